"""Systems of other papers, small and runnable here: same backbone, same data, same harness."""
