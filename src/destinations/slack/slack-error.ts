// What Slack's error codes mean for a message. Pure.

/**
 * `permanent`: the same message will be refused again. `transient`: nothing was posted, and time or a
 * person can mend it. `ambiguous`: it may have been posted.
 */
export type SlackErrorKind = 'permanent' | 'transient' | 'ambiguous';

const permanent: ReadonlySet<string> = new Set([
  'as_user_not_supported',
  'cannot_reply_to_message',
  'channel_not_found',
  'invalid_arg_name',
  'invalid_arguments',
  'invalid_array_arg',
  'invalid_attachments',
  'invalid_blocks',
  'invalid_blocks_format',
  'invalid_charset',
  'invalid_form_data',
  'invalid_json',
  'invalid_metadata_filter_keys',
  'invalid_metadata_format',
  'invalid_metadata_schema',
  'invalid_post_type',
  'is_archived',
  'is_inactive',
  'json_not_object',
  'markdown_text_conflict',
  'messages_tab_disabled',
  'metadata_must_be_sent_from_app',
  'metadata_too_large',
  'method_deprecated',
  'missing_post_type',
  'msg_blocks_too_long',
  'msg_too_long',
  'no_dual_broadcast_content_update',
  'no_text',
  'not_in_channel',
  'restricted_action',
  'restricted_action_non_threadable_channel',
  'restricted_action_read_only_channel',
  'restricted_action_thread_locked',
  'restricted_action_thread_only_channel',
  'slack_connect_blocked_file_type',
  'slack_connect_canvas_sharing_blocked',
  'slack_connect_file_link_sharing_blocked',
  'slack_connect_lists_sharing_blocked',
  'thread_not_found',
  'too_many_attachments',
  'too_many_contact_cards',
  'unknown_method',
  'user_not_found',
]);

/** Slack says of these that a part of the work may have been done. */
const ambiguous: ReadonlySet<string> = new Set(['fatal_error', 'internal_error']);

/**
 * Normalises an error code of Slack's Web API. A token that is wrong is transient: no message is at
 * fault for it, and a person can replace it. So is a code that nobody here has heard of.
 *
 * @example
 * import { classifySlackError } from 'millrace/adapters/slack';
 *
 * console.log(classifySlackError('channel_not_found')); // permanent
 */
export function classifySlackError(code: string): SlackErrorKind {
  if (permanent.has(code)) return 'permanent';
  return ambiguous.has(code) ? 'ambiguous' : 'transient';
}
