import type { Reporter, TestModule } from "vitest/node";

/**
 * Prints `N passed, N failed` (and `, N skipped` only if there are any) as the very last line of a run. A file that could not
 * be run and an error outside of all tests count as a failure each, and whatever else made the run fail as one: none of
 * them may hide behind a zero.
 */
export default class SummaryReporter implements Reporter {
  private count = { passed: 0, failed: 0, skipped: 0, pending: 0 };

  onInit(): void {
    // Vitest's own summary and the end of the global setup come late; nothing comes after 'exit'.
    process.once("exit", (code) => process.stdout.write(`${this.line(code)}\n`));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    this.count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) this.count[test.result().state] += 1;
      this.count.failed += module.errors().length;
      for (const suite of module.children.allSuites()) this.count.failed += suite.errors().length;
    }
  }

  private line(exitCode: number): string {
    const { passed, failed, skipped, pending } = this.count;
    // Pending are those that never came to run, after a bail-out or an interrupt.
    const notRun = skipped + pending;
    return `${passed} passed, ${failed || Number(exitCode !== 0)} failed${notRun > 0 ? `, ${notRun} skipped` : ""}`;
  }
}
