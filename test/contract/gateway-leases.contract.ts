import { expect, test } from 'vitest';
import type { GatewayLeases } from '../../src/state/gateway-leases.ts';
import { expectSoon } from '../support/eventually.ts';

/** Tests an implementation of `GatewayLeases`; `openTwo` returns the leases of a new drive at two gateways. */
export function gatewayLeasesContract(
  driver: string,
  openTwo: () => Promise<readonly [GatewayLeases, GatewayLeases]>,
): void {
  test(`the running gateways are those that renew their leases and have not ended them, in ${driver}`, async () => {
    const [one, other] = await openTwo();
    expect(await one.renew(60_000)).toEqual([one.gateway]);
    expect(await other.renew(60_000)).toEqual([one.gateway, other.gateway].sort());
    await other.end();
    expect(await one.renew(60_000)).toEqual([one.gateway]);
    await other.renew(1);
    await expectSoon(() => one.renew(60_000)).toEqual([one.gateway]);
  });
}
