"""What is reused between equal pods."""
