"""The corruptions of CIFAR-10-C-bar and ImageNet-C-bar (Mintun, Kirillov and Xie, 2021)."""
