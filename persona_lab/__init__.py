"""persona_lab: what do open-weight models do with what they know about a person?"""

__version__ = "0.1.0"
