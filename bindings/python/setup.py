"""Packs the module and the library beside it; called by scripts/wheel."""

import os
import platform

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class WithLibrary(Distribution):
    """Belongs where modules with machine code do."""

    def has_ext_modules(self):
        return True


class LinuxWheel(bdist_wheel):
    """Any Python 3, this machine's processor."""

    def get_tag(self):
        return "py3", "none", f"linux_{platform.machine()}"


setup(
    name="sotto",
    version=os.environ["SOTTO_VERSION"],
    description="Decentralized and compressed training for machines that barely talk",
    license="Apache-2.0",
    license_files=["LICENSE"],
    packages=["sotto"],
    package_data={"sotto": ["libsotto.so.0"]},
    python_requires=">=3.9",
    extras_require={"numpy": ["numpy"], "torch": ["torch"]},
    distclass=WithLibrary,
    cmdclass={"bdist_wheel": LinuxWheel},
)
