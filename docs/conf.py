"""How the documentation is built: offline, formulas as MathML, pages on laws made from the laws."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from gallery import figures_of_fluidcc  # noqa: E402

project = "fluidcc"
author = "the fluidcc authors"
copyright = "the fluidcc authors, Apache-2.0"
release = version = version_of("fluidcc")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "formulas",
    "made",
    "signatures",
]
made_tables = ["scenario_keys_tables.md", "quantities_tables.md"]
parts = ["papers/counts.md", "theory/beside.md", *made_tables]  # of other pages
exclude_patterns = ["_build", "_ext", "papers/figures", "tutorials", *parts]

myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "deflist", "colon_fence"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = False  # the pages of the reference hold several names each
autodoc_member_order = "bysource"
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
copybutton_prompt_text = ">>> |... |$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (figures_of_fluidcc,),
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "reset_modules": (),
    "abort_on_example_error": False,
}
suppress_warnings = ["config.cache"]  # the scraper is a function

html_theme = "furo"
html_title = f"fluidcc {release}"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0a62a0", "color-brand-content": "#0a62a0"},
    "dark_css_variables": {"color-brand-primary": "#6db3e8", "color-brand-content": "#6db3e8"},
}
