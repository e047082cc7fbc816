"""What is wrong with a file."""

__all__ = ["FileFormatError"]


class FileFormatError(RuntimeError):
    """A file that is damaged, or not what it claims to be; nothing of it was loaded."""
