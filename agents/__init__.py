"""The interrupt/resume runtime: agents and tools that ask people and resume.

Names are loaded at their first use, because model libraries need most of a second to load and
programs that only use an error or an address do not need them. `__init__.pyi` lists the names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
