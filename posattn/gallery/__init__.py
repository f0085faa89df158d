"""The gallery: every registered mechanism drawn and measured from its real code."""

from posattn.gallery.exhibit import make_gallery as make_gallery
from posattn.gallery.page import write_html as write_html
from posattn.gallery.page import write_markdown as write_markdown
