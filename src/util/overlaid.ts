/** Returns `target` with some of its properties replaced, without a change of `target` itself. */
export function overlaid<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get(of, key) {
      if (Object.hasOwn(own, key)) return Reflect.get(own, key);
      const value: unknown = Reflect.get(of, key);
      return typeof value === 'function' ? value.bind(of) : value;
    },
  });
}
