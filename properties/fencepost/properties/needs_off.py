"""Why a claim breaks under a fault that it needs off: a sentence for each pair, by protocol.

The runs are in `docs/needs-off`, which the tests make from a search. They report a pair without a run.
"""

from __future__ import annotations

from collections.abc import Mapping

_EXPIRED, _VOLATILE, _TORN, _MINTED = "record_expired", "record_volatile", "two_transactions", "key_per_retry"

WHY: Mapping[tuple[str, str], str] = {
    ("one_effect_per_intent", _EXPIRED): (
        "The second copy of a request is deduplicated only as long as the record of the first is kept, "
        "and it is forgotten while that copy is still on its way."
    ),
    ("one_effect_per_intent", _VOLATILE): (
        "The record of the first copy is gone with the memory that held it, so the second looks like the "
        "first."
    ),
    ("one_effect_per_intent", _TORN): (
        "The effect took place, but the downstream died before it kept the record, and carries out the "
        "request that is sent again."
    ),
    ("one_effect_per_intent", _MINTED): (
        "The request that is sent again has a key of its own, under which nothing is kept."
    ),
    ("same_key_same_intent", _EXPIRED): (
        "A fingerprint can be compared only with one that is kept; after the record is forgotten, other "
        "parameters pass under the same key."
    ),
    ("same_key_same_intent", _VOLATILE): (
        "The restart loses the fingerprint that other parameters under the same key would have been "
        "compared with."
    ),
    ("same_key_same_intent", _TORN): (
        "The first effect left no fingerprint behind, so other parameters pass under the same key."
    ),
    ("every_ok_is_the_original_receipt", _EXPIRED): (
        "Two requests with one key and different parameters have both been answered ok, and only one of "
        "the answers can be about the latest effect."
    ),
    ("every_ok_is_the_original_receipt", _VOLATILE): (
        "After the restart a second request with the same key and other parameters takes effect, and both "
        "have been answered ok."
    ),
    ("every_ok_is_the_original_receipt", _TORN): (
        "A receipt was kept for an effect that never took place, and answers the request that is sent again."
    ),
    ("receipt_is_true", _TORN): (
        "A receipt was kept, the downstream died before the effect, and the worker that asks believes the "
        "receipt."
    ),
    ("receipt_is_true", _MINTED): (
        "The key minted for a retry happens to be that of a later intent, whose owner asks and finds the "
        "receipt of the former one."
    ),
    ("fence_only_rises", _VOLATILE): "The restart sets the fence back to where it began.",
    ("every_contact_is_recorded", _VOLATILE): (
        "The downstream has answered ok and recorded the token; the restart forgets it."
    ),
    ("stale_effect_never_lands_after_contact", _VOLATILE): (
        "The new owner raised the fence, the restart forgets it, and the former owner's request is accepted."
    ),
    ("given_up_effects_never_happen", _EXPIRED): (
        "The effect took place and its record is forgotten; a second copy is declined and kept as "
        "declined, which its owner must take for the fate of the intent."
    ),
    ("given_up_effects_never_happen", _VOLATILE): (
        "The restart loses the receipt; a second copy is declined and kept as declined, which its owner "
        "must take for the fate of the intent."
    ),
    ("given_up_effects_never_happen", _TORN): (
        "The effect left no record; a second copy is declined and kept as declined, which its owner must "
        "take for the fate of the intent."
    ),
    ("given_up_effects_never_happen", _MINTED): (
        "The first request took effect under its key, the second was declined under another one, and the "
        "owner takes the latter for the fate of the intent."
    ),
    ("unknown_is_never_guessed", _EXPIRED): (
        "The owner raised the fence before it asked, as it should, but the record that it would have "
        "found has been forgotten."
    ),
    ("unknown_is_never_guessed", _VOLATILE): (
        "Nothing was found after the fence was raised, and that was right; then the restart forgets the "
        "fence, and the former owner's request can land after all."
    ),
    ("unknown_is_never_guessed", _TORN): (
        "The effect took place without a trace in the log of the downstream, so the owner that asks finds "
        "nothing."
    ),
    ("unknown_is_never_guessed", _MINTED): (
        "The effect is sent again under another key while the first request may still land: no downstream "
        "can tell that they are one intent."
    ),
    ("late_request_after_tombstone_refused", _EXPIRED): (
        "A tombstone stops a late request only as long as it is kept, and the request came later than that."
    ),
    ("late_request_after_tombstone_refused", _VOLATILE): (
        "The restart loses the tombstone, and the late request lands."
    ),
}
"""About outside effects."""

WHY_WORKFLOW: Mapping[tuple[str, str], str] = {
    ("one_effect_per_intent", _EXPIRED): (
        "The record of the first copy is forgotten while another copy of the call is still on its way, and "
        "that one looks like the first."
    ),
    ("one_effect_per_intent", _VOLATILE): (
        "The restart loses the record of the first copy, and the second takes effect like the first."
    ),
    ("fence_only_rises", _VOLATILE): "The restart sets the fence back to where it began.",
    ("stale_effect_never_lands_after_contact", _VOLATILE): (
        "The new owner's call was answered ok; the restart forgets its token and its record, and the former "
        "owner's call is accepted."
    ),
    ("given_up_effects_never_happen", _EXPIRED): (
        "The effect took place and its record is forgotten; a second copy is declined and kept as declined, "
        "which its owner must take for the fate of the intent, and fails the step."
    ),
    ("given_up_effects_never_happen", _VOLATILE): (
        "The restart loses the receipt; a second copy is declined and kept as declined, and the owner fails "
        "a step whose effect took place."
    ),
    ("former_intents_never_happen", _EXPIRED): (
        "The effect took place and its record is forgotten; a second copy is declined and kept as declined, "
        "so the owner gives the step another intent beside the one that took place."
    ),
    ("former_intents_never_happen", _VOLATILE): (
        "The restart loses the receipt; a second copy is declined and kept as declined, and the owner gives "
        "the step another intent beside the one that took place."
    ),
    ("late_request_after_tombstone_refused", _EXPIRED): (
        "A tombstone stops a late call only as long as it is kept, and the call came later than that."
    ),
    ("late_request_after_tombstone_refused", _VOLATILE): (
        "The restart loses the tombstone, and the late call takes effect."
    ),
}
"""About the life of an instance."""

WHY_TRIGGERS: Mapping[tuple[str, str], str] = {
    ("one_instance_per_trigger", _EXPIRED): (
        "The record of the first delivery is forgotten while the source may still deliver the event again, "
        "and the second delivery looks like the first."
    ),
    ("one_instance_per_trigger", _VOLATILE): (
        "The rows outlive the restart and the dedup records do not, so a delivery after it begins another "
        "instance."
    ),
    ("one_instance_per_trigger", _TORN): (
        "The row was written and the store died before the record, so the event that comes again is new "
        "to it."
    ),
    ("one_instance_per_trigger", _MINTED): (
        "The event that is delivered again has a key of its own, under which nothing is kept."
    ),
    ("an_answered_trigger_has_an_instance", _TORN): (
        "The record was written and the store died before the row; the event that comes again is answered "
        "from the record, with an instance that there is not."
    ),
    ("an_answered_trigger_has_an_instance", _MINTED): (
        "The key minted for a delivery happens to be that of another event, and the source is told that this "
        "one is taken."
    ),
    ("every_ok_names_the_instance_of_its_trigger", _TORN): (
        "The record names an instance whose row was never written."
    ),
    ("every_ok_names_the_instance_of_its_trigger", _MINTED): (
        "The key minted for a delivery happens to be that of another event, whose instance is named."
    ),
    ("one_notification_per_target", _EXPIRED): (
        "The recipient deduplicates only as long as it keeps the key, and forgets it while a second copy is "
        "on its way."
    ),
    ("one_notification_per_target", _VOLATILE): (
        "The recipient restarts without the keys that it had in memory, and takes what it has had."
    ),
    ("one_notification_per_target", _TORN): (
        "The notification reached its target, but the recipient died before it kept the key."
    ),
    ("one_notification_per_target", _MINTED): (
        "The notification that is sent again has a key of its own, which the recipient does not know."
    ),
    ("what_is_recorded_as_sent_was_received", _TORN): (
        "The recipient kept the key, died before it passed the notification on, and answers ok when it comes "
        "again."
    ),
    ("what_is_recorded_as_sent_was_received", _MINTED): (
        "The key minted for one version of the target happens to be that of another, so the recipient "
        "answers ok without passing it on."
    ),
}
"""The same for triggers and notifications."""
_UNKEYED = "mac_key_missing"

WHY_CLOCKS: Mapping[tuple[str, str], str] = {
    ("who_starts_an_effect_holds_the_lease", "clock_skewed"): (
        "The worker's clock is slower than the store's: by its own count the lease lasts, by the store's now "
        "it is over. So a lease alone stops nobody; what does is the fence, which asks no clock."
    ),
}
"""The same about clocks."""

WHY_RECOVERY: Mapping[tuple[str, str], str] = {
    ("recovery_repeats_nothing", _UNKEYED): (
        "Somebody writes into the checkpoint that a step is still to be run, and its hash anew; without a "
        "key nothing tells that from what the owner wrote, and the step is started a second time."
    ),
    ("waiting_steps_are_not_skipped", _UNKEYED): (
        "Somebody writes into the checkpoint that a step runs that waits, and its hash anew."
    ),
    ("only_a_step_that_ran_succeeds", _UNKEYED): (
        "Somebody writes into the checkpoint that a step is done or runs that never ran, and its hash anew."
    ),
    ("a_recovery_sees_what_was_committed", _UNKEYED): (
        "Other steps stand in the checkpoint, the hash was computed anew, and the worker believes it."
    ),
    ("steps_change_under_their_definition", _UNKEYED): (
        "A worker whose code does not fit writes the checkpoint again, to migrate the instance or to hand it "
        "over, and takes what was tampered with for the steps as they were."
    ),
    ("only_a_migration_changes_the_definition", _UNKEYED): (
        "The migration leaves the steps as it found them, and it found what was tampered with."
    ),
    ("only_the_incompatible_is_handed_over", _UNKEYED): (
        "The person is handed the steps as they were found, which is what was tampered with."
    ),
    ("a_tampered_checkpoint_is_never_resumed", _UNKEYED): (
        "Who changes the checkpoint changes its hash as well, and without a key there is nothing else to ask."
    ),
}
"""The same about recovery: the only fault is that there is no key."""
