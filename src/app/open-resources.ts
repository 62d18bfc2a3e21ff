/** A part of the running gateway. It may use the parts that were opened before it. */
export interface Resource {
  /** Lets running work go on until `over`. */
  close(over: AbortSignal): Promise<void>;
}

/** Open resources, closed together: the last opened first, or all at the same time. */
export class OpenResources implements Resource {
  readonly #resources: Resource[] = [];

  constructor(private readonly order: 'last first' | 'parallel' = 'last first') {}

  add<T extends Resource>(resource: T): T {
    this.#resources.push(resource);
    return resource;
  }

  async close(over: AbortSignal): Promise<void> {
    const resources = this.#resources.splice(0).reverse();
    if (this.order === 'parallel') await Promise.all(resources.map((resource) => resource.close(over)));
    else for (const resource of resources) await resource.close(over);
  }
}
