"""What was asked -> the mechanism that answers it, what it will promise and cost. Nothing here depends on data."""
