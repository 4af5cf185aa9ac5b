"""What the cards were to be like, check by check, and the tests that show it.

Whoever renames or removes one of these tests says here which one shows it from now on.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CARDS = "tests/unit/bot/slack/cards"
LISTENERS = "tests/unit/bot/slack/listeners"
DECISIONS = "tests/unit/bot/approvals"
LADDER = "tests/unit/bot/approvals/due/test_escalation.py"
EVERY = f"{CARDS}/test_every_state.py"
SHAPE = f"{CARDS}/test_shape.py"
REVIEWS = f"{LISTENERS}/test_reviews.py"
HOME = f"{LISTENERS}/test_home.py"
LISTS = f"{LISTENERS}/test_lists.py"
HOUSES = f"{LISTENERS}/test_organisations.py"
BATCHES = f"{DECISIONS}/test_batches.py"
SHARED = "tests/unit/bot/approvals/due/test_batch_cards.py"
BROWSER = "tests/browser/test_cards.py"

CHECKS: dict[str, tuple[str, ...]] = {
    "1 a deploy of four arguments is at most 300 px high at 390 px": (
        f"{BROWSER}::test_cards_are_no_higher_than_they_have_to_be",
    ),
    "2 the first line of each card is a symbol and a state": (
        f"{SHAPE}::test_the_first_line_is_a_symbol_and_a_state",
        f"{EVERY}::test_each_card_begins_with_a_symbol_and_a_state",
        f"{EVERY}::test_all_states_are_here",
    ),
    "3 no value stands twice on a pending card": (
        f"{SHAPE}::test_nothing_is_said_twice",
        f"{EVERY}::test_no_value_of_the_demos_tools_stands_twice",
    ),
    "4 each argument is in the title, the facts, or counted as hidden": (
        f"{SHAPE}::test_each_argument_is_in_the_title_the_facts_or_counted",
    ),
    "5 Details shows all arguments": (
        f"{REVIEWS}::test_all_arguments_stand_in_it_also_those_of_the_title",
    ),
    "6 normal risk has no mark; low, high and critical have one": (
        f"{SHAPE}::test_a_risk_is_said_where_it_is_not_as_usual",
    ),
    "7 high is confirmed; critical is not approved from the card": (
        f"{SHAPE}::test_high_is_confirmed_and_critical_has_a_form",
        f"{REVIEWS}::test_what_is_critical_takes_a_reason_and_its_name",
        f"{REVIEWS}::test_nothing_else_approves_what_is_critical",
    ),
    "8 with hidden text nothing is approved by one click": (
        (
            "tests/property/test_true_picture.py"
            "::test_what_the_card_hides_makes_approve_impossible_until_it_is_opened"
        ),
        f"{DECISIONS}/test_disclosure.py::test_what_is_cut_has_to_be_opened",
        f"{HOME}::test_what_waits_stands_there_with_one_button",
        f"{BATCHES}::test_what_the_card_does_not_show_is_not_in_it",
    ),
    "9 names are titles, or written for people": (
        f"{SHAPE}::test_a_name_is_its_authors_where_there_is_one",
        f"{EVERY}::test_no_name_of_an_argument_has_an_underscore",
    ),
    "10 values are words": (f"{SHAPE}::test_values_are_words",),
    "11 the why is not said again": (
        f"{CARDS}/test_words.py::test_the_why_that_stands_right_above_is_not_said_again",
        "tests/unit/bot/threads/flows/test_flows.py::test_a_why_that_was_just_said_is_marked_so",
    ),
    "12 anyone else, only where the requester is left out": (
        f"{SHAPE}::test_anyone_else_only_where_the_requester_is_left_out_and_in_the_group",
    ),
    "13 each deadline is a date and has its consequence": (
        f"{EVERY}::test_each_deadline_is_a_date_with_its_consequence",
    ),
    "14 no words of others are mrkdwn": (
        f"{CARDS}/test_every_builder.py::test_no_words_of_others_are_markup_in_a_message",
        f"{CARDS}/test_every_builder.py::test_no_words_of_others_are_markup_in_a_form_or_home",
        f"{CARDS}/test_properties.py::test_pending_card_is_safe",
    ),
    "15 each message has a text: state, title, person; another for each state": (
        f"{EVERY}::test_each_text_alone_says_the_state_and_then_the_title",
        f"{EVERY}::test_each_text_of_what_is_over_begins_with_its_first_line",
        f"{EVERY}::test_the_requester_is_named_while_it_waits",
        f"{SHAPE}::test_the_text_for_notifications_changes_with_each_state",
    ),
    "16 each button is read out with its label first": (
        f"{EVERY}::test_each_button_has_a_label_that_begins_with_its_words",
    ),
    "17 the menu has at most five options": (f"{EVERY}::test_each_menu_has_at_most_five_options",),
    "18 a claim is on all copies within 2 s, locks nobody out, ends by itself": (
        f"{LADDER}::test_a_claim_shows_on_all_copies_within_two_seconds_and_ends_by_itself",
        (
            f"{DECISIONS}/test_clicks_beside.py"
            "::test_a_vote_ends_a_claim_and_others_can_vote_meanwhile"
        ),
    ),
    "19 votes name who is missing; one person counts once": (
        f"{CARDS}/test_progress.py::test_each_requirement_says_how_many_it_has",
        f"{DECISIONS}/test_votes.py::test_nobody_is_counted_twice_or_for_nothing",
    ),
    "20 an edit voids the votes and says so": (
        f"{DECISIONS}/test_votes.py::test_an_edit_voids_the_votes_and_the_card_says_so",
    ),
    "21 words of the requester mark the card within 2 s": (
        (
            f"{DECISIONS}/test_withdrawals.py"
            "::test_what_a_requester_writes_is_on_the_card_in_two_seconds_and_reaches_the_agent"
        ),
    ),
    "22 a question and its answer are on the card; the deadline goes on": (
        (
            f"{DECISIONS}/test_clicks_beside.py"
            "::test_a_question_is_asked_in_the_thread_and_answered_on_the_card"
        ),
        "tests/unit/bot/slack/side_messages/test_beside.py::test_a_question_and_its_answer_stand_on_the_card",
    ),
    "23 the requester alone withdraws; the agent hears the words": (
        (
            f"{DECISIONS}/test_withdrawals.py"
            "::test_i9_the_button_asks_why_and_the_agent_hears_who_and_why"
        ),
        f"{DECISIONS}/test_withdrawals.py::test_any_requester_can_withdraw_and_nobody_else",
    ),
    "24 approved, running, ran or failed: one message": (
        "tests/unit/bot/approvals/test_execution.py::test_a_call_is_running_while_it_runs",
        "tests/unit/bot/approvals/test_execution.py::test_a_call_that_failed_is_told_with_its_error",
        "tests/scenario/test_main_job.py::test_approve",
    ),
    "25 what is over leads to its details alone": (
        f"{EVERY}::test_what_is_over_leads_to_its_details_alone",
        f"{CARDS}/test_properties.py::test_final_card_is_safe_and_decides_nothing",
    ),
    "26 the title of an edited card is that of what runs": (
        f"{CARDS}/test_final.py::test_an_edited_card_shows_what_ran_everywhere_but_in_its_changes",
    ),
    "27 that nobody can decide is said at once, with a way out": (
        "tests/unit/bot/people/test_quorum.py::test_i13_nobody_is_asked_what_nobody_can_decide",
        f"{DECISIONS}/test_admins.py::test_an_admin_is_asked_about_what_nobody_can_decide",
    ),
    "28 a batch is of equal rulings, without high and critical": (
        f"{SHARED}::test_what_people_must_see_one_by_one_has_cards_of_its_own",
        f"{SHARED}::test_a_card_holds_only_what_is_alike",
        f"{BATCHES}::test_another_ruling_is_not_in_it",
        f"{BATCHES}::test_what_is_risky_is_decided_by_itself",
    ),
    "29 a hundred items have one card and one form": (
        f"{SHARED}::test_more_than_a_hundred_have_a_second_card",
        f"{CARDS}/test_golden.py::test_card_is_taken_by_slack",
        f"{BATCHES}::test_a_hundred_cards_have_one_form",
    ),
    "30 two people decide different items of one batch": (
        "tests/scenario/calls/test_batches.py::test_two_people_decide_different_ones_at_once",
    ),
    "31 nothing ticked is an error below the list": (
        f"{BATCHES}::test_nothing_ticked_is_an_error_below_the_list",
    ),
    "32 a late form says who was first, and what was not used": (
        f"{REVIEWS}::test_a_form_that_comes_late_says_who_was_first",
        f"{REVIEWS}::test_a_form_that_came_after_the_deadline_says_that_nothing_ran",
    ),
    "33 typed text survives a page and an error": (
        f"{REVIEWS}::test_what_was_typed_stays_on_each_page",
        f"{LISTENERS}/test_editing.py::test_a_page_is_turned_with_what_was_typed",
        f"{LISTENERS}/test_editing.py::test_a_faulty_page_stays_and_says_what_is_wrong",
    ),
    "34 a reminder is one message, has the link, and is edited at the end": (
        f"{LADDER}::test_the_next_reminder_takes_the_place_of_the_one_before",
        (
            "tests/unit/bot/slack/messages/test_notifier.py"
            "::test_d10_a_reminder_has_a_link_and_is_removed_at_the_end"
        ),
        (
            "tests/browser/test_messages.py"
            "::test_a_reminder_links_to_its_card_and_goes_when_somebody_has_decided"
        ),
    ),
    "35 a direct message decides the same record; all copies are redrawn": (
        f"{LADDER}::test_people_who_are_not_in_the_channel_get_the_card_themselves",
        (
            "tests/scenario/calls/test_own_copies.py"
            "::test_a_card_in_a_direct_message_decides_the_same_and_both_say_so"
        ),
        "tests/browser/test_means.py::test_direct_messages_are_redrawn_together",
    ),
    "36 the root shows each end": (
        "tests/unit/bot/approvals/due/test_thread_reactions.py::test_each_status_has_its_sign",
        "tests/unit/bot/approvals/due/test_thread_reactions.py::test_the_run_goes_before_the_yes",
        "tests/scenario/calls/test_root_messages.py::test_the_root_says_what_waits_and_how_it_ended",
    ),
    "37 Home: by deadline, twenty a page, filters, a sentence where it is empty": (
        f"{HOME}::test_what_expires_first_stands_first",
        f"{HOME}::test_twenty_stand_on_a_page",
        f"{HOME}::test_filters_leave_out_what_does_not_fit",
        f"{HOME}::test_who_may_not_decide_has_an_empty_home",
    ),
    "38 each command of the help works; a wrong one has an answer of two lines": (
        f"{LISTS}::test_each_word_of_the_help_is_one_that_works",
        f"{LISTS}::test_what_is_wrong_gets_an_answer_of_at_most_two_lines",
    ),
    "39 words: in the catalogue, short, and in a second language": (
        "tests/unit/bot/words/test_nowhere_else.py::test_no_words_stand_outside_of_the_catalogue",
        "tests/unit/bot/words/test_nowhere_else.py::test_each_text_has_at_most_twelve_words",
        "tests/unit/bot/words/test_languages.py::test_each_card_fits_in_longer_words",
        "tests/unit/bot/words/test_languages.py::test_each_form_fits_in_longer_words",
    ),
    "40 all states at 1440 and 390, light and dark; contrast": (
        f"{BROWSER}::test_cards_can_be_read",
    ),
    "payloads of Enterprise Grid": (
        f"{HOUSES}::test_a_click_of_the_organisation_counts",
        f"{HOUSES}::test_a_form_of_the_organisation_counts",
        f"{HOUSES}::test_home_and_shortcuts_of_the_organisation_have_what_waits",
        f"{HOUSES}::test_a_command_of_the_organisation_lists_what_waits",
    ),
    "payloads of Slack Connect": (
        f"{HOUSES}::test_another_company_in_a_shared_channel_decides_nothing",
        f"{HOUSES}::test_another_company_has_no_home_no_shortcuts_and_no_commands",
        f"{HOUSES}::test_words_of_another_company_begin_nothing",
    ),
    "payloads of guests": (
        "tests/property/test_edges.py::test_i7_people_of_elsewhere_are_told_why_not",
        "tests/scenario/people/test_refusals.py::test_a_guest_hears_nothing_of_the_approvers",
        f"{LISTENERS}/test_shortcuts.py::test_a_guest_sees_why_there_is_nothing",
        f"{LISTS}::test_guests_and_strangers_learn_nothing",
    ),
    "payloads of Home": (f"{HOME}::test_review_opens_what_shows_everything",),
    "payloads of modals": (
        f"{LISTENERS}/test_modals.py::test_an_edit_without_its_fields",
        "tests/scenario/test_main_job.py::test_reject_with_a_reason",
    ),
    "payloads of shortcuts": (
        f"{LISTENERS}/test_shortcuts.py::test_ones_approvals_open_as_a_form",
        "tests/scenario/people/test_messages.py::test_an_agent_is_asked_about_a_message",
    ),
    "an unknown command": (f"{LISTS}::test_what_is_wrong_gets_an_answer_of_at_most_two_lines",),
    "a malformed date": (
        "tests/scenario/people/test_times.py::test_a_time_is_read_as_people_mean_it",
        f"{HOME}::test_a_faulty_absence_is_explained_at_its_field",
        f"{REVIEWS}::test_what_cannot_be_handed_over_is_said_at_its_input",
    ),
    "a person who is not in the workspace": (
        f"{HOUSES}::test_another_company_in_a_shared_channel_decides_nothing",
        f"{HOUSES}::test_nobody_hands_a_right_to_another_company",
    ),
    "a form that comes late": (f"{REVIEWS}::test_a_form_that_comes_late_says_who_was_first",),
    "a deleted root message": (
        (
            f"{LISTENERS}/test_changed_messages.py"
            "::test_a_root_with_replies_leaves_a_tombstone_and_the_thread_goes_on"
        ),
        "tests/unit/bot/slack/messages/test_lost_places.py::test_a_direct_message_says_so_once",
    ),
    "a channel that was archived meanwhile": (
        "tests/unit/bot/slack/messages/test_lost_places.py::test_a_direct_message_says_so_once",
        (
            "tests/unit/bot/slack/messages/test_lost_places.py"
            "::test_a_card_that_has_no_place_expires_and_who_asked_knows"
        ),
    ),
    "a locale that is not there": (
        f"{HOME}::test_a_locale_and_a_zone_that_are_not_there_are_english_and_utc",
        "tests/unit/bot/words/test_catalog.py::test_a_locale_that_is_not_there_is_english",
    ),
}
SURE = {"assert", "expect", "raises", "check(", ".until("}
"""What makes a test able to fail, beside the helpers of the browser's players."""


@cache
def functions_of(path: str) -> dict[str, ast.AsyncFunctionDef | ast.FunctionDef]:
    """The test functions of a file, by name."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {function.name: function for function in tree.body if isinstance(function, kinds)}


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_has_tests_that_exist_and_can_fail(check: str) -> None:
    for named in CHECKS[check]:
        path, name = named.split("::")
        function = functions_of(path).get(name)
        assert function is not None, f"{named} is not there: which test shows “{check}” now?"
        assert not any("skip" in ast.unparse(decorator) for decorator in function.decorator_list)
        words = ast.unparse(function)
        assert any(word in words for word in SURE) or "player" in words


def test_no_check_was_forgotten() -> None:
    numbers = [int(check.split()[0]) for check in CHECKS if check[0].isdigit()]
    assert numbers == [*range(1, 41)]
