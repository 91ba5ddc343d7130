"""The pages whose figures come from stored results."""
