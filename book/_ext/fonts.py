"""Fonts with the characters that pages use, in the style sheet itself.

In a file of its own one would come later, and move what is set.
"""

from base64 import b64encode
from io import BytesIO
from logging import WARNING, getLogger

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

# It tells each table of a font that it leaves out.
getLogger("fontTools").setLevel(WARNING)
FACE = (
    '@font-face{{font-family:"{family}";font-weight:{weight};'
    'font-display:block;src:url("data:font/woff2;base64,{data}") '
    'format("woff2")}}\n'
)


def subset(path, characters, layout_features=()):
    """A font with these characters only, given by their numbers."""
    font = TTFont(path)
    options = Options(
        hinting=False, layout_features=[*layout_features], name_IDs=["*"]
    )
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    return font


def face(family, font, weight=400):
    """The rule that gives a page this font."""
    font.flavor = "woff2"
    file = BytesIO()
    font.save(file)
    data = b64encode(file.getvalue()).decode()
    return FACE.format(family=family, weight=weight, data=data)
