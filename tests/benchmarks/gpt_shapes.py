"""Shapes of the parameters of GPT models, in blocks as a backward pass ends them: the embeddings, the layers, the last normalisation.
Knows no library."""
import math


def gpt_blocks(layers, width, vocabulary, places):
    block = [(width,), (width,), (width, 3 * width), (3 * width,), (width, width), (width,)]
    block += [(width,), (width,), (width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    return [[(vocabulary, width), (places, width)]] + [block] * layers + [[(width,), (width,)]]


def gpt2_blocks(scale=1.0):
    """GPT-2 small: 148 tensors, 124439808 elements. With `scale` every extent is multiplied by its root."""

    def scaled(extent):
        return max(1, round(extent * math.sqrt(scale)))

    return gpt_blocks(12, scaled(768), scaled(50257), scaled(1024))


def small_blocks():
    """The model "small" of train_gpt: 76 tensors, 10.8 million elements."""
    return gpt_blocks(6, 384, 256, 256)


def flatten(blocks):
    return [shape for block in blocks for shape in block]
