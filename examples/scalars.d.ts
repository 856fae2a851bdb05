declare module "gql.tada" {
  interface setupSchema {
    scalars: { DateTime: string; UUID: string };
  }
}

export {};
