"""Create a study folder from ADNI tables and images: :func:`import_adni`."""

from brainlsap.adni.convert import AdniImport, import_adni

__all__ = ["AdniImport", "import_adni"]
