"""What v1.37 derives from objects in another way."""
