/** The run can't be carried through, for a reason that fits a line. */
export class DemoFailure extends Error {
  override readonly name = "DemoFailure";
}
