"""The cluster files of the documentation: well formed, with commands and options that exist."""

import json
import re
import subprocess
from pathlib import Path

import click
import pytest

from dign.cli.commands import cli

ROOT = Path(__file__).parents[2]
CLUSTERS = ROOT / "examples" / "clusters"
FILES = sorted(path.name for path in CLUSTERS.iterdir())


def read_yaml(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML, which Ray brings along, is not installed")
    return yaml.safe_load((CLUSTERS / name).read_text())


@pytest.mark.parametrize("name", FILES)
def test_every_command_of_dign_in_it_has_the_options_it_is_given(name):
    found = 0
    for line in (CLUSTERS / name).read_text().splitlines():
        for match in re.finditer(r"\bdign (train|grid|data)\b([^`|#]*)", line):
            found += 1
            command = cli.get_command(click.Context(cli), match[1])
            if isinstance(command, click.Group):
                command = command.commands[match[2].split()[0]]
            known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
            assert set(re.findall(r"--[a-z-]+", match[2])) <= known, line
    assert found, "no command of dign"


def test_the_slurm_script_is_a_script():
    assert subprocess.run(["bash", "-n", str(CLUSTERS / "slurm.sh")]).returncode == 0
    asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", (CLUSTERS / "slurm.sh").read_text(), re.MULTILINE))
    used = (CLUSTERS / "slurm.sh").read_text()
    assert f"--devices {asked['ntasks-per-node']} --nodes {asked['nodes']}" in used


def test_the_ray_cluster_file_fits_ray_s_own_schema():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'dign[ray]'")
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, which Ray brings along, is not installed")
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema.validate(read_yaml("ray-cluster.yaml"), schema)


def test_the_kubernetes_job_has_the_form_of_a_ray_job():
    job = read_yaml("kuberay-job.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob") and job["metadata"]["name"]
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        assert container["image"] and all(isinstance(value, str) for value in group["rayStartParams"].values())
        assert "env" not in container and container["envFrom"] == [{"secretRef": {"name": "bucket"}}], (
            "keys from a secret"
        )
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


@pytest.mark.parametrize("name", FILES)
def test_the_documentation_names_it(name):
    assert f"examples/clusters/{name}" in (ROOT / "docs" / "distributed.md").read_text()
