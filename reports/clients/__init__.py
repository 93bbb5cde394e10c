"""All that goes over the network: GitHub and webhooks."""
