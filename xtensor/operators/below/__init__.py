"""Who answers calls below autograd, and operators as objects that they are asked about."""
