"""Packs the module with the library and the program beside it; called by scripts/wheel."""

import os
import pathlib
import platform
import re

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel


class WithLibrary(Distribution):
    """Belongs where modules with machine code do."""

    def has_ext_modules(self):
        return True


class LinuxWheel(bdist_wheel):
    """Any Python 3, this machine's processor."""

    def get_tag(self):
        return "py3", "none", f"linux_{platform.machine()}"


def description():
    """The README without the links to files beside it, which an index does not have."""
    text = pathlib.Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    name="sotto",
    version=os.environ["SOTTO_VERSION"],
    description="Decentralized and compressed training for machines that barely talk",
    long_description=description(),
    long_description_content_type="text/markdown",
    author="the sotto authors",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=[
        "distributed training",
        "gossip",
        "gradient compression",
        "decentralized SGD",
        "PyTorch",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C++",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(9, 14)),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: System :: Distributed Computing",
        "Typing :: Typed",
    ],
    packages=["sotto"],
    package_data={"sotto": ["py.typed", "libsotto.so.0", "bin/sotto"]},
    entry_points={"console_scripts": ["sotto = sotto._program:main"]},
    python_requires=">=3.9",
    extras_require={"numpy": ["numpy"], "torch": ["torch"]},
    zip_safe=False,
    distclass=WithLibrary,
    cmdclass={"bdist_wheel": LinuxWheel},
)
