# SPDX-License-Identifier: Apache-2.0
"""Every verb explains itself: --help on stdout with exit 0, a man page that names each of its options, errors that say
what to do."""
import re
import unittest

import program


def verbs(*path):
    """The verbs below path that run something, as --help lists them."""
    done = program.run(*path, "--help")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    listed = re.findall(r"^  ([a-z][a-z-]*)  +\S", done.stdout, re.M)
    if not re.search(r"^usage: [^\n]*\bVERB\b", done.stdout):
        return [path]
    return [leaf for name in listed for leaf in verbs(*path, name)]


class Help(unittest.TestCase):
    def test_every_verb_has_help(self):
        leaves = verbs()
        self.assertGreaterEqual(len(leaves), 4)
        for path in leaves:
            done = program.run(*path, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)
            self.assertTrue(done.stdout.startswith("usage: assay " + " ".join(path)), path)

    def test_every_option_is_in_the_man_page(self):
        for path in verbs():
            page = (program.ROOT / "man" / f"assay-{path[0]}.1.scd").read_text()
            for option in re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", program.run(*path, "--help").stdout, re.M):
                self.assertIn(f"*{option}*", page, f"{' '.join(path)}: {option}")

    def test_every_verb_is_in_the_overview(self):
        overview = (program.ROOT / "man" / "assay.1.scd").read_text()
        for name in {path[0] for path in verbs()}:
            self.assertIn(f"*{name}*", overview)

    def test_wrong_usage(self):
        for args, message in [
            (["rnu"], "did you mean `assay run`?"),
            ([], "expected a verb"),
            (["run"], "expected an experiment"),
            (["run", "--shrot", "exp-001"], "did you mean --short?"),
            (["run", "exp-001", "more"], "too many arguments"),
            (["run", "ex-001"], "did you mean exp-001?"),
            (["reference", "polici"], 'unknown format "polici"; did you mean "policy"?'),
        ]:
            done = program.run(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertEqual(done.stdout, "", args)
            self.assertIn(message, done.stderr)

    def test_reference_is_the_document(self):
        for args, name in [((), "manifest"), (("manifest",), "manifest"), (("policy",), "policy")]:
            document = (program.ROOT / "docs" / "formats" / f"{name}-keys.md").read_text()
            self.assertEqual(program.run("reference", *args).stdout, document)

    def test_version(self):
        done = program.run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^assay \d+\.\d+\.\d+ \(")


if __name__ == "__main__":
    program.main()
