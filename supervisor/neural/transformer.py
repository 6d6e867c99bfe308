"""The forward pass of a BERT encoder in numpy: numbers of word pieces in, one vector for the text out.

Six small layers are three dozen products of matrices, so no framework is needed. One text at a time: its vector then
depends on nothing but the text, to the last bit, and a text costs what its length says. A text is a column for each of
its pieces: the linear algebra library takes half of the time for (out, in) times (in, pieces) of what it takes for the
transposed product, as long as the pieces are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actors.search.postings import Floats

_EPSILON = np.float32(1e-12)  # layer_norm_eps of BERT's models
_LITTLE = 1_000_000  # rows times columns times what they share; measured with OpenBLAS 0.3.31
_ROWS = 16
_SHORT = 16  # pieces; with more of them the products themselves take the time
_HALF = np.float32(0.5)
_GELU = np.float32(0.7978845608028654)  # sqrt(2 / pi)
_GELU_CUBE = np.float32(0.044715)


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """A layer normalisation: what its columns are stretched and moved by."""

    weight: Floats
    bias: Floats

    def __call__(self, columns: Floats) -> Floats:
        columns = columns - columns.mean(axis=0)
        columns *= 1 / np.sqrt(np.square(columns).mean(axis=0) + _EPSILON)
        columns *= self.weight
        columns += self.bias
        return columns


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """An affine map; the weights are (out, in)."""

    weight: Floats
    bias: Floats

    def __call__(self, columns: Floats) -> Floats:
        out = _product(self.weight, columns)
        out += self.bias
        return out


def _product(weight: Floats, columns: Floats) -> Floats:
    """Return the product of two matrices, for a short text in blocks of rows.

    OpenBLAS copies what it multiplies into another order first, but not for small products on processors with AVX-512;
    and for a few columns the copy costs as much as the product. In blocks a short query takes four fifths of the time.
    """
    height, size = len(weight), columns.shape[1]
    rows = _LITTLE // columns.size // _ROWS * _ROWS
    if size > _SHORT or not 0 < rows < height:
        product: Floats = weight @ columns
        return product
    out = np.empty((height, size), np.float32)
    for first in range(0, height, rows):
        np.matmul(weight[first : first + rows], columns, out=out[first : first + rows])
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Attention among the pieces of a text, then a wider map of each piece; each with what went in added again."""

    query: Dense
    key: Dense
    value: Dense
    attended: Dense
    attention_norm: Norm
    wide: Dense
    narrow: Dense
    norm: Norm
    heads: int

    def __call__(self, columns: Floats) -> Floats:
        columns = self.attention_norm(self.attended(self._attention(columns)) + columns)
        return self.norm(self.narrow(_gelu(self.wide(columns))) + columns)

    def _attention(self, columns: Floats) -> Floats:
        width, size = columns.shape
        shape = (self.heads, width // self.heads, size)
        query, key, value = (part(columns).reshape(shape) for part in (self.query, self.key, self.value))
        shares = key.transpose(0, 2, 1) @ query  # per head: (piece that is looked at, piece that looks)
        shares *= np.float32(shape[1] ** -0.5)
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        out: Floats = (value @ shares).reshape(width, size)
        return out


def _gelu(values: Floats) -> Floats:
    """Return x times the normal distribution's function of x, by the tanh form (Hendrycks & Gimpel, arXiv:1606.08415).

    The models were trained with the exact form; numpy has no error function. Cosines differ in the fourth decimal.
    """
    inner = values * values
    inner *= _GELU_CUBE
    inner += 1
    inner *= values
    inner *= _GELU
    np.tanh(inner, out=inner)
    inner += 1
    inner *= values
    inner *= _HALF
    return inner


@dataclass(frozen=True, slots=True, eq=False)
class Transformer:
    """The encoder. Safe in several threads at once, as nothing in it changes."""

    pieces: Floats  # per piece of the vocabulary its vector
    places: Floats  # per place in a text, with the vector of the only type of text added
    norm: Norm
    layers: tuple[Layer, ...]

    @property
    def width(self) -> int:
        return int(self.pieces.shape[1])

    def encode(self, numbers: Sequence[int]) -> Floats:
        """Return the mean of the vectors of a text's pieces, at least one, at most as many as there are `places`."""
        columns = self.norm((self.pieces[list(numbers)] + self.places[: len(numbers)]).T)
        for layer in self.layers:
            columns = layer(columns)
        out: Floats = columns.mean(axis=1)
        return out


def transformer_of(arrays: Mapping[str, npt.NDArray[np.float32]], heads: int) -> Transformer:
    """Return the encoder of a BERT model by its published names. Raises `KeyError`, or `ValueError` for shapes."""

    def norm(name: str) -> Norm:
        return Norm(arrays[f"{name}.weight"][:, None], arrays[f"{name}.bias"][:, None])

    def dense(name: str) -> Dense:
        return Dense(arrays[f"{name}.weight"], arrays[f"{name}.bias"][:, None])

    def layer(number: int) -> Layer:
        part = f"encoder.layer.{number}"
        return Layer(
            query=dense(f"{part}.attention.self.query"),
            key=dense(f"{part}.attention.self.key"),
            value=dense(f"{part}.attention.self.value"),
            attended=dense(f"{part}.attention.output.dense"),
            attention_norm=norm(f"{part}.attention.output.LayerNorm"),
            wide=dense(f"{part}.intermediate.dense"),
            narrow=dense(f"{part}.output.dense"),
            norm=norm(f"{part}.output.LayerNorm"),
            heads=heads,
        )

    count = sum(name.endswith(".attention.self.query.weight") for name in arrays)
    made = Transformer(
        pieces=arrays["embeddings.word_embeddings.weight"],
        places=arrays["embeddings.position_embeddings.weight"] + arrays["embeddings.token_type_embeddings.weight"][0],
        norm=norm("embeddings.LayerNorm"),
        layers=tuple(map(layer, range(count))),
    )
    made.encode([0])  # raises where shapes do not fit
    return made
