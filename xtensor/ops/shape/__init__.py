"""Views, and copies in another shape or order."""
