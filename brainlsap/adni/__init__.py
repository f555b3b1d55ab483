"""ADNI's tables and LONI's images become a study's folder: :func:`import_adni`."""

from brainlsap.adni.convert import AdniImport, import_adni

__all__ = ["AdniImport", "import_adni"]
