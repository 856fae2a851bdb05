/** Something the person at the terminal can put right: one line that says what is wrong and what to type. No stack trace. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
