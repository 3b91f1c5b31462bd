"""Names for help texts and completion, without importing torch. A test compares them with the registries."""

METHODS = {
    "standard": "cross-entropy",
    "at": "adversarial training (PGD)",
    "trades": "clean loss plus adversarial consistency",
    "rse": "fixed Gaussian noise, ensemble at test time",
    "deepaugment": "images distorted by random networks (Noise2Net)",
    "augmix": "mixed augmentation chains with Jensen-Shannon consistency",
    "augmax": "AugMix with adversarial mixing weights",
    "dign-without-cr": "diverse Gaussian noise, no consistency term",
    "dign": "diverse Gaussian noise consistency",
    "consistency": "agreement under noise of one level, for certificates",
    "cutout": "a square of the image covered",
    "mixup": "two images mixed, and their labels",
    "cutmix": "a box of another image pasted in, labels mixed by area",
    "autoaugment": "one of 25 pairs of operations, as found for CIFAR-10",
    "trivialaugment": "one operation at a random strength, and one of thirty noises if wanted",
    "patch-gaussian": "Gaussian noise in a square",
    "prime": "random filters, deformations and colors mixed, Jensen-Shannon consistency",
    "apr": "amplitudes of one image with the phases of another (APR-SP)",
    "hybridaugment": "low frequencies of one image with the high ones of another (HybridAugment++)",
    "afa": "planar waves added to a second batch",
    "gradient-regularization": "small gradients of the loss with respect to the image",
    "cure": "gradients that hardly turn: curvature regularization",
    "llr": "a loss that is linear around each image",
    "fwat": "adversarial training by Frank-Wolfe steps, adapted in number if you like",
    "noisy-features": "noise at every convolution, ensemble at test time (RSE as its authors have it)",
}

MODELS = {
    "tinynet": "three-stage net for demonstrations, 0.04 M parameters",
    "fastnet": "three-stage net for CPUs, widths 16-64-128, whitened input, 0.3 M parameters",
    "wide_fastnet": "fastnet of widths 64-256-256, 2.0 M parameters",
    "resnet18": "ResNet-18 for small images, 11.2 M parameters",
    "wide_resnet18": "ResNet-18 of five times the width, 279 M parameters",
    "densenet121": "DenseNet-121 at growth rate 12, 1.0 M parameters",
    "efficientnet_lite0": "EfficientNet-Lite0 for photographs of 96 pixels and more, 4.7 M parameters",
}
