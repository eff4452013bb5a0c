"""Runs Doxygen over copies of the public headers."""

import shutil
import subprocess
from pathlib import Path

import headers as header_files

HERE = Path(__file__).parent


def run(program, source, headers, work, settings=None):
    """Leaves work/reference, work/xml and work/sotto.tag. Returns the warnings, a line each."""
    work = Path(work).resolve()
    stage = work / "include"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    header_files.stage(source, headers, stage)
    lines = [(HERE / "Doxyfile").read_text()]
    lines += [
        f'{name} = "{value}"'
        for name, value in {
            "INPUT": stage,
            "LAYOUT_FILE": HERE / "DoxygenLayout.xml",
            "STRIP_FROM_PATH": stage,
            "STRIP_FROM_INC_PATH": stage,
            "OUTPUT_DIRECTORY": work,
            "GENERATE_TAGFILE": work / "sotto.tag",
            **(settings or {}),
        }.items()
    ]
    result = subprocess.run(
        [program, "-"], input="\n".join(lines), text=True, capture_output=True, check=False
    )
    warnings = [line.replace(f"{stage}/", "") for line in result.stderr.splitlines() if line.strip()]
    if result.returncode != 0:
        raise SystemExit("doxygen failed:\n" + "\n".join(warnings))
    return warnings
