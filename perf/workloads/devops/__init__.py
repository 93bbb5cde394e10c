"""The devops workload of TSBS: hosts that report metrics, and queries about them."""
