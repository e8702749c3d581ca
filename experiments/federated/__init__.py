"""The experiments of one-shot federated conformal prediction, ours and the published methods."""
