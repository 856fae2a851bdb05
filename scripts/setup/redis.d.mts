export interface RedisPlan {
  readonly install: boolean;
  readonly remedy: string;
}

export declare function planRedis(here: {
  uid: number | undefined;
  platform: NodeJS.Platform;
  onPath: (program: string) => boolean;
}): RedisPlan;
