"""A small residual network for 28 x 28 images: a million parameters, nearly all of them in one linear layer."""

from torch import Tensor, nn


class ResidualNet(nn.Module):
    """Convolution stem, one residual block, a second convolution, two linear layers: 1,020,010 parameters.

    No normalisation layers, so the parameters are the whole state and equal parameters mean equal replicas.
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.block = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
        )
        self.narrow = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.hidden = nn.Linear(32 * 7 * 7, 640)
        self.output = nn.Linear(640, classes)
        self.relu = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """Maps images (N, 1, 28, 28) to class scores (N, classes)."""
        features = self.relu(self.stem(images))
        features = self.relu(features + self.block(features))
        features = self.relu(self.narrow(features)).flatten(1)
        scores: Tensor = self.output(self.relu(self.hidden(features)))
        return scores
