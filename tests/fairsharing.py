"""A stand-in for the package bioregistry: its folder with a few invented records."""

import json

SUBJECTS = {
    "Astronomy": ("stars", "galaxies", "telescope", "orbit", "spectra"),
    "Botany": ("plants", "leaves", "seeds", "flowers", "herbarium"),
    "Geology": ("rocks", "minerals", "strata", "volcano", "fossils"),
    "Linguistics": ("words", "grammar", "dialects", "corpora", "speech"),
}


def records(count=40):
    """Records by identifier; the words of a description follow from its keyword."""
    made = {}
    for number in range(count):
        keyword = list(SUBJECTS)[number % len(SUBJECTS)]
        words = SUBJECTS[keyword]
        shown = " ".join(words[(number // 4 + at * (1 + number % 3)) % 5] for at in range(4))
        made[f"FAIRsharing.{number}"] = {
            "name": f"{keyword} Archive {number}",
            "description": f"number{number} collects {shown} from place{number} since year{number}.",
            "keywords": [keyword, "Database"],
        }
    return made


def install(site, content, *, version="9.9", place="external/fairsharing/processed.json"):
    """Write the package to the folder `site`, in a way that fails if it is imported."""
    file = site / "bioregistry" / place
    file.parent.mkdir(parents=True)
    (site / "bioregistry" / "__init__.py").write_text("raise AssertionError('imported')\n")
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    info = site / f"bioregistry-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bioregistry\nVersion: {version}\n")
