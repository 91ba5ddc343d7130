"""Training: configuration, perturbation (Algorithm 1), examples, fine-tuning of the stages, pretraining."""
