import { commitFields } from '../api/commit.ts';
import { fileMetadata } from '../api/metadata.ts';
import { exceptRoot, readPath, writePathOrId } from '../api/paths.ts';
import { LOOKUP, NO_REFUSALS } from '../api/refusals.ts';
import { type Route, rpc } from '../api/route.ts';
import { number, optional, required, struct, unsupported, withDefault } from '../api/schema.ts';
import { readableFile } from '../content/file-content.ts';
import { downloadUrl, uploadUrl } from '../links/temporary-site.ts';

/** Lifetime of a download link, and maximum of an upload link: four hours. */
const LINK_SECONDS = 14_400;
const UPLOAD_LINK_SECONDS_MIN = 60;

/** Creates a link to the current revision, so that a client that streams from it never gets two files mixed. */
const temporaryLink = rpc({
  name: 'files/get_temporary_link',
  scope: 'files.content.read',
  argument: { path: required(readPath) },
  refusals: LOOKUP,
  handle: async ({ argument, caller: { account }, storage, temporaryLinks, clock, contentUrl }) => {
    const address = exceptRoot(argument.path, account.namespace);
    const file = readableFile(await storage.stat(account.namespace, address, false));
    const nowMs = clock.now();
    const target = { kind: 'download', accountId: account.id, rev: file.rev } as const;
    const secret = await temporaryLinks.add(target, nowMs + LINK_SECONDS * 1000);
    return { metadata: fileMetadata(file), link: downloadUrl(contentUrl(), secret) };
  },
});

/** Creates an upload link. A commit that is refused shows only when the link is used. */
const temporaryUploadLink = rpc({
  name: 'files/get_temporary_upload_link',
  scope: 'files.content.write',
  argument: {
    commit_info: required(
      struct({
        ...commitFields,
        path: required(writePathOrId),
        // Refused here, because the upload by the link has no answer that could report unsupported properties.
        property_groups: optional(unsupported),
      }),
    ),
    duration: withDefault(number({ min: UPLOAD_LINK_SECONDS_MIN, max: LINK_SECONDS }), LINK_SECONDS),
  },
  refusals: NO_REFUSALS,
  handle: async ({ argument, caller, temporaryLinks, clock, contentUrl }) => {
    const nowMs = clock.now();
    const { id: accountId, namespace } = caller.account;
    const target = { kind: 'upload', accountId, namespace, commit: argument.commit_info } as const;
    // A duration may have parts of a millisecond, and times are stored as whole ones.
    const secret = await temporaryLinks.add(target, nowMs + Math.floor(argument.duration * 1000));
    return { link: uploadUrl(contentUrl(), secret) };
  },
});

export const TEMPORARY_ROUTES: readonly Route[] = [temporaryLink, temporaryUploadLink];
