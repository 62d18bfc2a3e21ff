import type { Flat, LookupError, Nested, PathLookupError, Tag, Timestamp } from './files.ts';

// ---- sharing/*

/** A request may write a union member without a value as its bare name. */
type Named<Name extends string> = Name | Tag<Name>;

type LinkAudience = 'public' | 'team' | 'no_one' | 'password' | 'members';

type RequestedVisibility = 'public' | 'team_only' | 'password';

/** At least one field must be present, or the service answers `invalid_settings`. */
export interface SharedLinkSettings {
  readonly require_password?: boolean;
  readonly link_password?: string;
  readonly expires?: Timestamp;
  readonly audience?: Named<LinkAudience>;
  readonly access?: Named<'viewer' | 'editor' | 'max' | 'default'>;
  /** Deprecated, but the only visibility that the project's specification names. */
  readonly requested_visibility?: Named<RequestedVisibility>;
  readonly allow_download?: boolean;
}

export interface CreateSharedLinkWithSettingsArg {
  readonly path: string;
  readonly settings?: SharedLinkSettings;
}

type ResolvedVisibility =
  | RequestedVisibility
  | 'team_and_password'
  | 'shared_folder_only'
  | 'no_one'
  | 'only_you';

interface VisibilityPolicy {
  readonly policy: Tag<RequestedVisibility | 'other'>;
  readonly resolved_policy: Tag<ResolvedVisibility | 'other'>;
  readonly allowed: boolean;
  readonly disallowed_reason?: Tag<
    | 'delete_and_recreate'
    | 'restricted_by_shared_folder'
    | 'restricted_by_team'
    | 'user_not_on_team'
    | 'user_account_type'
    | 'permission_denied'
    | 'other'
  >;
}

type SharedLinkAccessFailureReason =
  | 'login_required'
  | 'email_verify_required'
  | 'password_required'
  | 'team_only'
  | 'owner_only';

export interface LinkPermissions {
  readonly can_revoke: boolean;
  /** Present where `can_revoke` is false. */
  readonly revoke_failure_reason?: Tag<SharedLinkAccessFailureReason | 'other'>;
  readonly visibility_policies: readonly VisibilityPolicy[];
  readonly can_set_expiry: boolean;
  readonly can_remove_expiry: boolean;
  readonly allow_download: boolean;
  readonly can_allow_download: boolean;
  readonly can_disallow_download: boolean;
  readonly allow_comments: boolean;
  readonly team_restricts_comments: boolean;
  readonly resolved_visibility?: Tag<ResolvedVisibility | 'other'>;
  /** Present for the owner. */
  readonly requested_visibility?: Tag<RequestedVisibility>;
  readonly effective_audience?: Tag<LinkAudience | 'other'>;
  readonly require_password?: boolean;
}

interface SharedLinkBase {
  readonly url: string;
  readonly id?: string;
  readonly name: string;
  readonly expires?: Timestamp;
  /** Present for the owner. */
  readonly path_lower?: string;
  readonly link_permissions: LinkPermissions;
}

interface FileLinkMetadata extends SharedLinkBase {
  readonly client_modified: Timestamp;
  readonly server_modified: Timestamp;
  readonly rev: string;
  readonly size: number;
}

type FolderLinkMetadata = SharedLinkBase;

export type SharedLinkMetadata = Flat<'file', FileLinkMetadata> | Flat<'folder', FolderLinkMetadata>;

export type SharedLinkSettingsError = Tag<'invalid_settings' | 'not_authorized'>;

/** The link is absent when it may not have the requested settings. */
interface SharedLinkAlreadyExists {
  readonly shared_link_already_exists?: Nested<'metadata', SharedLinkMetadata> | Tag<'other'>;
}

export type CreateSharedLinkWithSettingsError =
  | PathLookupError
  | Flat<'shared_link_already_exists', SharedLinkAlreadyExists>
  | Nested<'settings_error', SharedLinkSettingsError>
  | Tag<'email_not_verified' | 'access_denied' | 'banned_member' | 'too_many_shared_folders'>;

export interface ListSharedLinksArg {
  readonly path?: string;
  readonly cursor?: string;
  /** Default: links of the folders above are included. */
  readonly direct_only?: boolean;
}

export interface ListSharedLinksResult {
  readonly links: readonly SharedLinkMetadata[];
  readonly has_more: boolean;
  readonly cursor?: string;
}

export type ListSharedLinksError = Nested<'path', LookupError> | Tag<'reset' | 'other'>;

export interface RevokeSharedLinkArg {
  readonly url: string;
}

/** SharedLinkError */
type LinkErrorTag =
  | 'shared_link_not_found'
  | 'shared_link_access_denied'
  | 'unsupported_link_type'
  | 'unsupported_parameter_field'
  | 'other';

export type RevokeSharedLinkError = Tag<LinkErrorTag | 'shared_link_malformed'>;

export interface ModifySharedLinkSettingsArg {
  readonly url: string;
  readonly settings: SharedLinkSettings;
  readonly remove_expiration?: boolean;
}

export type ModifySharedLinkSettingsError =
  | Tag<LinkErrorTag | 'email_not_verified'>
  | Nested<'settings_error', SharedLinkSettingsError>;

// ---- users/*

interface RootInfo {
  readonly root_namespace_id: string;
  readonly home_namespace_id: string;
}

/** `users/get_current_account` */
export interface FullAccount {
  /** 40 characters. */
  readonly account_id: string;
  readonly name: {
    readonly given_name: string;
    readonly surname: string;
    readonly familiar_name: string;
    readonly display_name: string;
    readonly abbreviated_name: string;
  };
  readonly email: string;
  readonly email_verified: boolean;
  readonly disabled: boolean;
  readonly locale: string;
  readonly referral_link: string;
  readonly is_paired: boolean;
  readonly account_type: Tag<'basic' | 'pro' | 'business'>;
  readonly root_info: Flat<'user', RootInfo> | Flat<'team', RootInfo & { readonly home_path: string }>;
  readonly country?: string;
}

interface IndividualSpaceAllocation {
  readonly allocated: number;
}

interface TeamSpaceAllocation {
  /** Bytes used by the whole team, including this user. */
  readonly used: number;
  readonly allocated: number;
  /** 0: no limit for this user except the team's. */
  readonly user_within_team_space_allocated: number;
  readonly user_within_team_space_limit_type: Tag<'off' | 'alert_only' | 'stop_sync' | 'other'>;
  readonly user_within_team_space_used_cached: number;
}

/** `users/get_space_usage` */
export interface SpaceUsage {
  readonly used: number;
  readonly allocation:
    | Flat<'individual', IndividualSpaceAllocation>
    | Flat<'team', TeamSpaceAllocation>
    | Tag<'other'>;
}

// ---- oauth2/token

/** The answer to the `refresh_token` grant. The refresh token stays valid. */
export interface TokenResult {
  readonly access_token: string;
  readonly token_type: 'bearer';
  /** Seconds until it expires. */
  readonly expires_in: number;
  readonly scope?: string;
  readonly uid?: string;
  readonly account_id?: string;
}

/** Answered with status 400. */
export interface OAuthError {
  readonly error: 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'unsupported_grant_type';
  readonly error_description?: string;
}
