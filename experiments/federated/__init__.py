"""The experiments of one-shot federated conformal prediction, ours beside the published methods."""
