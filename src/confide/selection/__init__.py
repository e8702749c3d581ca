"""Counts have become utilities -> one candidate, drawn by OpenDP's secure samplers; and the exact laws of the draws."""
