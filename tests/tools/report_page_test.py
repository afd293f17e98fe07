#!/usr/bin/env python3
"""The page of `prunerc report` in a browser: no complaint, no request, a mark for every trial, operators that can be
switched."""

import os

import browser
import command
import pages


class ReportPage(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.assertIsNotNone(browser.program(), "no chromium: tools/build/packages-test.txt names the package")
        pages.tune_once(self, "two", self.tune)

    def tune(self):
        for op in ("dense", "scale"):
            self.prunerc("tune", self.ops, "--op", op, "--trials", "4", "--threads", "1", "--quiet")

    def report(self, *arguments):
        found = self.prunerc("report", *arguments, "-o", "report.html", "--json").json()
        return found["operators"], self.path("report.html")

    def check_quiet(self, page):
        self.assertEqual([], page.complaints())
        self.assertEqual(1, len(page.requests()), page.requests())

    def count(self, page, selector):
        return page.evaluate(f"document.querySelectorAll({selector!r}).length")

    def check_charts(self, page, op):
        self.assertEqual(op["op"], page.evaluate("document.getElementById('name').textContent.split(' ')[0]"))
        timed = [t for t in op["trials"] if "ns" in t]
        self.assertEqual(len(op["trials"]), self.count(page, "figure:nth-of-type(1) .mark.trial"))
        self.assertEqual(len(timed), self.count(page, "figure:nth-of-type(2) .mark.trial"))
        marks = 2 if op["heuristic"] else 1
        self.assertEqual(marks, self.count(page, "figure:nth-of-type(3) .mark.point"))
        # Axes have numbers; every mark lies within its chart.
        self.assertGreater(self.count(page, "figure:nth-of-type(1) text"), 5)
        outside = """[...document.querySelectorAll('.chart .mark')].filter((m) => {
          const mark = m.getBoundingClientRect(), chart = m.ownerSVGElement.getBoundingClientRect();
          return mark.right < chart.left || mark.left > chart.right || mark.bottom < chart.top || mark.top > chart.bottom;
        }).length"""
        self.assertEqual(0, page.evaluate(outside))

    def test_charts_have_a_mark_for_every_trial_and_operators_can_be_switched(self):
        operators, path = self.report()
        with browser.Browser() as page:
            page.open(path, "#op-0")
            self.check_charts(page, operators[0])
            self.assertEqual(2, self.count(page, "#operators option"))
            page.evaluate("""new Promise((done) => {
              addEventListener('hashchange', () => setTimeout(done));
              const select = document.getElementById('operators');
              select.value = '1';
              select.dispatchEvent(new Event('change'));
            })""")
            self.check_charts(page, operators[1])
            # By a link of the overview, too, which takes the focus along.
            page.evaluate("""new Promise((done) => {
              addEventListener('hashchange', () => setTimeout(done));
              const link = document.querySelector('a[href="#op-0"]');
              link.focus();
              link.click();
            })""")
            self.check_charts(page, operators[0])
            self.assertEqual("name", page.evaluate("document.activeElement.id"))
            page.evaluate("document.querySelector('input[value=seconds]').click()")
            self.check_charts(page, operators[0])
            self.assertIn("seconds", page.evaluate("document.querySelector('figure').textContent"))
            page.evaluate("document.querySelector('details').open = true")
            page.evaluate("new Promise((done) => setTimeout(done, 50))")
            self.assertEqual(len(operators[0]["trials"]), self.count(page, "details tbody tr"))
            self.check_quiet(page)
            # Also a fragment chosen by hand.
            page.open(path, "#op-1")
            page.evaluate("new Promise((done) => setTimeout(done, 50))")
            self.check_charts(page, operators[1])

    def test_nothing_is_wider_than_a_narrow_window_and_texts_can_be_read(self):
        _, path = self.report()
        with browser.Browser() as page:
            page.resize(400)
            for scheme in ("light", "dark"):
                page.prefer(scheme)
                page.open(path)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 400)
                colours = page.evaluate("""(() => {
                  const style = getComputedStyle(document.documentElement);
                  return [style.color, style.backgroundColor].map((c) => c.match(/\\d+/g).slice(0, 3).map(Number));
                })()""")
                ink, paper = (sum(c) / 3 for c in colours)
                self.assertGreater(abs(ink - paper), 150)
                self.assertEqual(scheme == "dark", paper < ink)
                # Charts are drawn as wide as they are, so their texts have the size that is meant.
                sizes = "[...document.querySelectorAll('.chart svg')].map((s) => s.viewBox.baseVal.width - s.clientWidth)"
                self.assertEqual([0, 0, 0] , [round(d) for d in page.evaluate(sizes)])
                page.screenshot(self.path(scheme + ".png"))
                self.assertGreater(os.path.getsize(self.path(scheme + ".png")), 10000)
            self.check_quiet(page)

    def test_every_control_has_a_name_and_charts_have_words(self):
        _, path = self.report()
        with browser.Browser() as page:
            page.open(path)
            nodes = page.call("Accessibility.getFullAXTree")["nodes"]
            roles = {}
            for node in nodes:
                if not node["ignored"]:
                    roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
            for role in ("link", "combobox", "radio", "image"):
                self.assertGreater(len(roles.get(role, [])), 0, role)
                self.assertNotIn("", roles[role], role)
            self.assertTrue(any("Tuning curve. " in name for name in roles["image"]), roles["image"])

    def test_smuggled_markup_is_shown_as_text(self):
        lines = self.prunerc("db", "export", "-").out.replace('"op":"dense"', '"op":"</script><b id=evil>x"')
        self.prunerc("db", "import", self.write("evil.jsonl", lines), "--db", "evil.sqlite")
        _, path = self.report("--db", "evil.sqlite")
        with browser.Browser() as page:
            page.open(path)
            self.assertEqual(0, self.count(page, "#evil"))
            self.assertIn("</script><b id=evil>x", page.evaluate("document.getElementById('main').textContent"))
            self.check_quiet(page)

    def test_a_search_that_found_nothing_has_a_page(self):
        lines = pages.with_failures(self.prunerc("db", "export", "-").out)
        self.prunerc("db", "import", self.write("failed.jsonl", lines), "--db", "failed.sqlite")
        operators, path = self.report("--db", "failed.sqlite")
        with browser.Browser() as page:
            page.open(path, "#op-0")
            self.assertIn("No candidate ran", page.evaluate("document.getElementById('main').textContent"))
            self.assertEqual(len(operators[0]["trials"]), self.count(page, ".mark.failed"))
            self.check_quiet(page)


if __name__ == "__main__":
    command.main()
