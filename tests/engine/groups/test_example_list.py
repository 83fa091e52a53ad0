"""Where each worked example of spec 11 is tested: the states of groups (S) and the rest (E)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
# File → example → test.
EXAMPLES = {
    "tests/engine/groups/test_worked_examples.py": {
        "S1": "test_s1_unassigned_members_are_unscheduled",
        "S2": "test_s2_an_assumed_member_counts_as_scheduled",
        "S3": "test_s3_s4_a_bound_member_is_assigned_and_one_that_ended_is_gone",
        "S4": "test_s3_s4_a_bound_member_is_assigned_and_one_that_ended_is_gone",
        "S5": "test_s5_a_member_deleted_at_permit_leaves_nothing_to_forget",
        "S6": "test_s6_an_unknown_group_takes_the_assumed_copy_as_assigned",
        "S7": "test_s7_members_of_other_schedulers_count_once_they_are_bound",
        "E1": "test_e1_e2_e3_a_gang_waits_for_its_object_and_its_members",
        "E2": "test_e1_e2_e3_a_gang_waits_for_its_object_and_its_members",
        "E3": "test_e1_e2_e3_a_gang_waits_for_its_object_and_its_members",
        "E4": "test_e4_a_gated_member_counts_and_the_others_back_off",
        "E5": "test_e5_members_are_ordered_by_priority_then_by_first_attempt",
        "E6": "test_e6_a_sibling_in_flight_is_left_out",
        "E7": "test_e7_a_sibling_comes_along_before_its_backoff_is_over",
        "E8": "test_e8_members_of_two_profiles_fail_together",
        "E9": "test_e9_a_member_whose_group_is_gone_is_dropped",
        "E9a": "test_e9a_a_gang_without_room_is_retried_without_a_pause",
        "E10": "test_e10_members_that_ended_shrink_the_gang",
        "E11": "test_e11_two_gangs_do_not_block_each_other",
        "E12": "test_e12_members_preempt_one_by_one_and_the_group_waits",
        "E13": "test_e13_an_eviction_is_not_taken_back",
        "E14": "test_a_later_member_that_preempts_makes_a_possible_group_wait",
        "E15": "test_a_later_member_that_preempts_makes_a_possible_group_wait",
        "E16": "test_e16_e17_e18_a_surplus_member_that_does_not_fit_stays_behind",
        "E17": "test_e16_e17_e18_a_surplus_member_that_does_not_fit_stays_behind",
        "E18": "test_e16_e17_e18_a_surplus_member_that_does_not_fit_stays_behind",
        "E20": "test_e20_e21_a_member_turned_down_at_the_end_lets_the_others_wait",
        "E21": "test_e20_e21_a_member_turned_down_at_the_end_lets_the_others_wait",
        "E22": "test_e22_members_at_permit_time_out",
        "E23": "test_e23_a_group_that_vanished_fails_its_members",
        "E24": "test_e24_without_the_gang_gate_any_member_is_enough",
        "E25": "test_e25_a_terminating_member_is_left_out",
        "E26": "test_e26_a_nomination_is_restored_and_then_cleared",
        "E27": "test_e27_terms_of_members_in_the_same_cycle_are_not_listed",
        "E28": "test_e28_e29_one_placement_per_label_value",
        "E29": "test_e28_e29_one_placement_per_label_value",
        "E30": "test_e30_no_node_has_the_label",
        "E31": "test_e31_the_fuller_placement_wins",
        "E32": "test_e32_a_tie_goes_to_the_first_placement",
        "E33": "test_e33_no_placement_is_large_enough",
        "E35": "test_e35_every_group_is_tried_by_placements",
        "E37": "test_e37_the_most_important_pods_stay",
        "E38": "test_a_group_that_is_evicted_whole_is_one_unit",
        "E39": "test_a_group_that_is_evicted_whole_is_one_unit",
        "E40": "test_e40_one_member_of_a_basic_group_is_enough",
        "E41": "test_e41_budgets_protect_units",
        "E42": "test_why_a_group_does_not_preempt",
        "E43": "test_why_a_group_does_not_preempt",
        "E44": "test_e44_victims_that_are_leaving_are_chosen_again",
        "E45": "test_e45_an_ordinary_preemptor_takes_single_members",
        "E48": "test_e48_members_that_share_a_claim_race_at_binding",
    },
    "tests/engine/groups/test_trial.py": {
        "E19": "test_e19_an_error_ends_the_trial_and_fails_all",
        "E34": "test_counts_are_normalised_to_the_largest",
        "E36": "test_e36_an_error_ends_the_search_for_a_placement",
    },
    "tests/apiserver/writes/test_groups.py": {
        "E46": "test_e46_fields_of_gates_that_are_off_are_dropped",
        "E47": "test_e47_system_classes_are_too_high_for_groups",
    },
}


def test_every_worked_example_has_a_test() -> None:
    chapter = (ROOT / "docs/spec/11-pod-groups.md").read_text()
    in_chapter = re.findall(r"^\| ([SE]\d+a?) \|", chapter, re.MULTILINE)
    listed = [example for tests in EXAMPLES.values() for example in tests]
    assert sorted(listed) == sorted(in_chapter)
    assert len(listed) == 56


def test_the_listed_tests_exist_and_name_their_examples() -> None:
    for file, tests in EXAMPLES.items():
        text = (ROOT / file).read_text()
        for example, name in tests.items():
            assert f"def {name}(" in text, name
            named = re.search(rf"_{example.lower()}_", name) or re.search(rf'"{example}\b', text)
            assert named, (example, name)
