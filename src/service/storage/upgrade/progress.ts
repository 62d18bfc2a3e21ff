/** How far a step of an upgrade has come. */
export interface UpgradeProgress {
  /** What the step upgrades: `index`. */
  readonly what: string;
  /** What it counts: `names`. */
  readonly unit: string;
  readonly done: number;
  readonly total: number;
}
