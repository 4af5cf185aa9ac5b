"""The interrupt/resume runtime: agents and tools that ask people, and go on from their answer.

Each name is loaded when it is first used: models and their messages take most of a second to load,
and whoever only looks at an error or an address does not need them. `__init__.pyi` lists the names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
