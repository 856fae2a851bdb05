import { type DocumentNode, getOperationAST, Kind, type SelectionNode } from "graphql";

/** The field that a subscription asks for. A validated document has one, which may be inside of fragments. */
export function subscribedField(document: DocumentNode, operationName: string | null | undefined): string {
  let selection: SelectionNode | undefined = getOperationAST(document, operationName)?.selectionSet.selections[0];
  while (selection && selection.kind !== Kind.FIELD) {
    const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragmentOf(document, selection.name.value);
    selection = fragment?.selectionSet.selections[0];
  }
  return selection?.name.value ?? "";
}

function fragmentOf(document: DocumentNode, name: string) {
  return document.definitions.find(
    (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === name,
  ) as Extract<DocumentNode["definitions"][number], { kind: Kind.FRAGMENT_DEFINITION }> | undefined;
}
