"""What train_gpt.py and train_gpt_plain.py share: a text as tensors, a GPT over its characters,
the command line, and how the learning rate goes."""

import argparse
import math

import torch

CONTEXT = 64


class Text:
    """The characters of a text, numbered in the order of their bytes."""

    def __init__(self, symbols):
        self.symbols = symbols

    def _at(self, begin):
        places = begin + torch.arange(CONTEXT)
        return self.symbols[places], self.symbols[places + 1]

    def sample(self, rows, generator):
        """Rows of characters from anywhere, and the character that follows each."""
        room = len(self.symbols) - CONTEXT - 1
        return self._at(torch.randint(room, (rows, 1), generator=generator))

    def pieces(self, rows):
        """Rows at equal distances."""
        room = len(self.symbols) - CONTEXT - 1
        return self._at((torch.arange(rows) * (room // rows)).unsqueeze(1))


def read_text(file):
    """The first nine tenths, to train on, the rest, and the number of characters that there are."""
    with open(file, "rb") as text:
        data = torch.tensor(list(text.read()))
    if len(data) < 20 * CONTEXT:
        raise SystemExit(f"{file}: too short")
    alphabet, symbols = data.unique(return_inverse=True)
    cut = len(symbols) * 9 // 10
    return Text(symbols[:cut]), Text(symbols[cut:]), len(alphabet)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.mix = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(
            4 * width, width
        )

    def forward(self, x):
        rows, places, width = x.shape
        parts = self.qkv(self.norm1(x)).view(rows, places, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        future = torch.ones(places, places, dtype=torch.bool).triu(1)
        scores = query @ key.transpose(2, 3) / math.sqrt(width / self.heads)
        seen = torch.softmax(scores.masked_fill(future, -1e9), 3) @ value
        x = x + self.mix(seen.transpose(1, 2).reshape(rows, places, width))
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self, alphabet, width, layers):
        super().__init__()
        self.symbol = torch.nn.Embedding(alphabet, width)
        self.place = torch.nn.Embedding(CONTEXT, width)
        self.blocks = torch.nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, alphabet)

    def loss(self, batch):
        """The mean cross entropy of the characters that follow, in nats."""
        x = self.symbol(batch[0]) + self.place(torch.arange(CONTEXT))
        x = self.head(self.norm(self.blocks(x))).float()
        return torch.nn.functional.cross_entropy(x.flatten(0, 1), batch[1].flatten())


def test_loss(model, text):
    """The loss on text that was not trained on: pieces of it at equal distances."""
    with torch.no_grad():
        return model.loss(text.pieces(256)).item()


def read_recipe():
    """The command line; the defaults are those of a model of 10.7 million parameters."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("file", help="a text")
    for name, default in (
        ("steps", 600),
        ("width", 384),
        ("layers", 6),
        ("batch", 8),
        ("accumulate", 2),
        ("warm-up", 50),
        ("every", 50),
        ("resume", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--until", type=float, default=0, help="a loss at which training ends")
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--checkpoints", help="a folder")
    parser.add_argument("--algorithm", default="dcd")
    parser.add_argument("--compressor", default="")
    parser.add_argument("--tensorboard", default="", help="a folder")
    parser.add_argument("--bind", default="127.0.0.1", help="this host's address")
    return parser.parse_args()


def factor_at(recipe, step):
    """Of the learning rate: a ramp, and then half a cosine down to a tenth."""
    if step < recipe.warm_up:
        return (step + 1) / recipe.warm_up
    way = (step - recipe.warm_up) / max(1, recipe.steps - recipe.warm_up)
    return 0.55 + 0.45 * math.cos(math.pi * way)
