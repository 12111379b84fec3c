"""Run the notebooks of the documentation and keep their outputs: python docs/notebook.py.

`tests/test_docs.py` runs the same code without saving.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    """A notebook with the outputs of a fresh run; a cell that fails raises `CellExecutionError`."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False).execute()
    for cell in notebook.cells:
        cell.pop("execution_count", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
    return notebook


def main() -> None:
    """Rewrite the outputs of all notebooks."""
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)
        print(path.name)


if __name__ == "__main__":
    main()
