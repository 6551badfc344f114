"""Mutants that nothing could kill: what they change is not seen by anybody, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {
    "core/units/source_digests.py:Sketch.of: False -> True": (
        "More different digests than a sketch keeps are left there, and keeping some of them says itself that there were others."
    ),
    "core/lattice/bounded_evaluations.py:Evaluations.bound: True -> False": (
        "Which histograms are kept for coarser nodes saves work, and changes no count."
    ),
    "core/lattice/branch_and_bound.py:BranchAndBound._open: len(self._heap) < MOST_REGIONS -> True": (
        "The order in which regions are searched changes no node. The heap takes more memory."
    ),
    "core/lattice/branch_and_bound.py:BranchAndBound._open: < -> <=": (
        "One region more lies in the heap before others lie on the stack: all are looked at, or count as open."
    ),
    "core/lattice/search.py:Search.__post_init__: self.prices -> False": (
        "A bound of 0 holds of every node: the search then looks at more of them, and chooses the same."
    ),
    "core/recoding/release_order.py:_told_apart: 1 -> (1 + 1) #3": (
        "More numbers than there are groups sort alike: they say how many bits are looked at."
    ),
    "core/recount/linked.py:_owned: DISTINCT  -> ": "Who has a pseudonym is grouped by person right afterwards.",
    "tasks/lattice/optimum.py:find_best_node: CACHED_WITH_PERSONS * cells -> CACHED_WITH_PERSONS": (
        "How many cells are kept for further roll-ups saves work, and changes no count."
    ),
    "core/recoding/release_order.py:assign_files: 0 -> (0 + 1)": (
        "Any seed spreads the records of a class alike well, as long as it stays the same."
    ),
    "core/recount/groups.py:withheld_sql: IS NOT DISTINCT FROM -> =": (
        "Records of nobody, which alone have nulls here, all stay, so that such a group adds nothing whether it is joined or not."
    ),
    "tasks/composition/by_files.py:_comparable: run.recoded[1].withheld -> False": (
        "Only a job that names persons leaves records out by whose they are, and of such a job files are not compared."
    ),
    "core/units/persons.py:CellPersons.count_repeated_pairs: 1 -> (1 + 1)": "Persons are numbered from 0: -2 is none of them, as -1.",
    "core/units/persons.py:CellPersons.merged: 1 -> (1 + 1)": "Persons are numbered from 0, so that -2 is none of them as -1 is.",
    "tasks/recount/rows.py:RowsInOneDatabase.__init__: 0 -> (0 + 1)": (
        "The number tells tables apart and is shown to nobody, wherever it begins."
    ),
    "core/recount/labels/published_values.py:_grouped: 1 -> (1 + 1) #2": "Groups are numbered from 0, so that -2 is none of them as -1 is.",
    "core/recount/people.py:source_counts_sql: DISTINCT  ->  #1": (
        "What a record of the source adds to the persons of its value is 0, however often it is added."
    ),
    "core/recount/spreads.py:holder_classes_sql: max( -> min(": (
        "Each value comes with the same number of persons: that of all values together."
    ),
    "core/lattice/certificate.py:_parts: < -> <=": (
        "A level is rolled up to itself one group to one, so that none falls apart into more than one."
    ),
    (
        "core/units/person_rollups.py:PersonRollUps.classes: keep and self._qids == len(node) and pays_to_cac"
        "he(len(base.counts), len(there)) -> ((self._qids == len(node)) and (pays_to_cache(len(base.counts), len(there))))"
    ): "What is kept beyond what was asked for takes memory and changes no count.",
    "core/units/person_rollups.py:PersonClasses.owners: 1 -> (1 + 1) #1": "The last place is nobody's.",
    "core/units/person_rollups.py:PersonRollUps.__init__: 30 -> (30 + 1)": (
        "No weight of a class is more than its records, so that 32 bits hold the sums of fewer than 2^31 of these too."
    ),
    "core/units/person_rollups.py:PersonRollUps.__init__: < -> <= #1": (
        "A cell of exactly k persons is counted person by person too, which takes longer and gives the same number."
    ),
    "core/lattice/branch_and_bound.py:BranchAndBound._narrowed: finest + 1 -> 1": (
        "The finest level of a region that is not empty is not cut, so that nothing finer is: bisection finds the same first level."
    ),
    "core/privacy/kernels.py:demands_of: 0 -> (0 + 1) #1": "Without a tree nobody looks into the array.",
    "core/privacy/kernels.py:is_close: < -> <=": "A distance that is asked for is t and a slack, so that it is never 0.",
    "tasks/lattice/node_recodings.py:recode_locally: SUPPRESSED_VALUE, recoding.labels[name] -> recoding.labels[name], SUPPRESSED_VALUE": (
        "Label and labels are compared for equality, in which their order does not matter."
    ),
    "tasks/recount/published_labels.py:_stars: columns[0], MASK -> MASK, columns[0]": (
        "Label and labels are compared for equality, in which their order does not matter."
    ),
    "core/lattice/objectives.py:LevelPrices.floor: > -> >=": "Nothing times a factor is nothing.",
    "core/recoding/release_order.py:_sorted_as_numbers: span <= 1 << 32 -> False": (
        "Numbers that fit into 32 bits sort and unpack alike in 64, which takes more memory and time."
    ),
    "core/units/pairs.py:Pairs.of: 0 -> (0 + 1)": (
        "Room for one cell more leaves pairs in the same order, and only where all are of cell 0 there is any."
    ),
    "core/privacy/models.py:Closeness._moved: 1 -> (1 + 1) #8": "One group more, into which no value falls, has nothing to move.",
    "tasks/composition/by_files.py:_left: <= -> < #1": (
        "An earlier chunk whose files are exactly those of a chunk of now is not looked at, as all of them are here."
    ),
    "tasks/verification/release.py:_source_faults: 0 -> (0 + 1) #2": (
        "Masked records are taken off the starred ones only where both are as many, and of a source no record is starred."
    ),
    "tasks/verification/file_forms.py:_is_plain: 0 -> (0 + 1)": "A file without row groups has none that is too large.",
    "core/recount/classes.py:recount_sql: IS NOT DISTINCT FROM -> =": (
        "A filter takes what is unknown as what is not so, and nothing but filters reads the stars."
    ),
    "core/recount/linked.py:malformed_pseudonym_groups: IS NOT DISTINCT FROM -> =": (
        "A filter takes what is unknown as what is not so, and nothing but a filter reads the stars."
    ),
    "core/recount/people.py:people_sql: min( -> max(": ("The person at rank k is one at most, so that least and most are the same."),
    "core/recount/people.py:classes_sql: UNION ALL -> UNION": ("Each class has a number of its own, so that no two rows are alike."),
    "core/recount/shared_ends.py:step_lines: 1 -> (1 + 1) #4": ("It is 1 or 1,000."),
    "core/recount/labels/group_levels.py:levels_of_bins: integers -> False": (
        "Whole numbers as texts have no point, so that they have 0 places either way."
    ),
    "core/recount/labels/label_spans.py:_read_range: min(int(limits.max), np.iinfo(np.int64).max) -> int(limits.max)": (
        "NumPy takes a bound that lies beyond the type of what it clips as none."
    ),
    "core/units/unit.py:in_classes: 0 -> (0 + 1)": ("The least owner is asked whether it is below 0, which a 1 beside it does not change."),
    "core/composition/classes.py:JointCells.__init__: dense -> False": (
        "Cells are counted alike in an array of all and one by one, and never are more of them occupied than there are."
    ),
    "core/units/kernels.py:count_repeated_persons: 1 -> (1 + 1) #1": (
        "The number tells one person from the one before, and every second number does so as well."
    ),
    "core/units/pairs.py:number_persons: 2 * len(digests) -> len(digests)": (
        "A table that is fuller takes longer to look into and holds the same, as one place at least stays free."
    ),
    "core/units/set_tree.py:SetTree._make_room: 1 -> (1 + 1) #1": ("A table that is emptier takes more memory and holds the same."),
    "core/units/source_digests.py:Sketch.of: 4 -> (4 + 1) #1": (
        "Where the digests are cut, more of them than a sketch keeps are different: that is asked before they are left out."
    ),
    "core/units/set_tree.py:SetTree._make_room: <= -> <": "A tree that is emptier takes more memory and holds the same.",
    "core/units/kernels.py:merge_person_cells: 1 -> (1 + 1) #1": (
        "The number tells one person from the one before, and every second number does so as well."
    ),
    "core/privacy/holders.py:fewest_too_many: person_count * most -> most": (
        "The number is looked for from there on, downwards and upwards: it takes longer and is the same."
    ),
    "core/privacy/refusals.py:refusal_discloses: 2 -> (2 + 1) #1": "Nobody looks at a third half.",
    (
        "tasks/composition/by_contents.py:_identity: compared.mine.values, compared.theirs.values"
        " -> compared.theirs.values, compared.mine.values"
    ): ("Of each pair it is only asked whether one of both is missing."),
    "tasks/composition/earlier.py:KnownRecords.sketches: columns not in self._sketches -> True": (
        "What is made anew each time is the same, and takes longer."
    ),
    "tasks/writing/runs.py:_check_unpacked: 0 -> (0 + 1)": "A dictionary without a text unpacks to nothing, as is asked right afterwards.",
    "core/units/source_digests.py:Sketch.of: >= -> >": "What is left out there is left out when the sketch is cut to its size, too.",
    "core/lattice/bounded_evaluations.py:Evaluations.evaluate: >= -> > #1": "One node more is known before some are forgotten.",
    "core/recoding/release_order.py:_sorted_as_numbers: > -> >=": "Records that just fit into a number sort the same without one.",
    "core/recount/labels/group_levels.py:_scaled: 0 -> (0 + 1)": "Without a number there is none that has to fit.",
    "core/recount/labels/label_spans.py:_read_range: end, least -> least, end": (
        "The larger of both is taken, in whichever order they are given, and of that and the most the smaller."
    ),
    "tasks/composition/earlier.py:_are_common_in_files: <= -> <": "Of two sources of the same files either holds the other's.",
    "tasks/lattice/node_recodings.py:_records_with: labels, label -> label, labels": (
        "Label and labels are compared for equality, in which their order does not matter."
    ),
    "tasks/lattice/node_recodings.py:_left: requirements.people is None or first.members is None -> ((first.members is None))": (
        "The classes have members just where the persons of the source are known."
    ),
    "tasks/lattice/node_recodings.py:_left: requirements.people is None or first.members is None -> ((requirements.people is None))": (
        "The classes have members just where the persons of the source are known."
    ),
    (
        "tasks/lattice/node_recodings.py:_left: requirements.people is None or first.members is None"
        " -> ((requirements.people is None) and (first.members is None))"
    ): ("The classes have members just where the persons of the source are known."),
    "tasks/recount/truth.py:compare_with_source: 2 -> (2 + 1)": (
        "How many bytes the database leaves to what is held beside it says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/published_values.py:_worked_out: 0 -> (0 + 1) #2": "Each of these columns has an entry for every value.",
    "tasks/recount/published_values.py:_worked_out: persons -> True #2": (
        "Where each record counts by itself, the first of a value are all who have it."
    ),
    "tasks/recount/published_values.py:_figures: value is not None -> True #1": (
        "The null comes last of what is published, and its error is 0, as is that of a value that is not found."
    ),
    "tasks/verification/file_forms.py:csv_faults: path, copy -> copy, path": "Two files have the same bytes, whichever comes first.",
    'tasks/verification/file_forms.py:_has_plain_schema: set(schema.metadata or ()) - {b"ARROW:schema"} -> set(schema.metadata or ())': (
        "Arrow takes its own schema out of what it reads as a file's metadata."
    ),
    "tasks/verification/published_releases.py:release_folder: 1 -> (1 + 1)": (
        "What stands behind the last mark is the same however often a text is parted before it."
    ),
    "tasks/writing/cells.py:CellRewriting.write_run: self.job.columns.person -> True": (
        "What is gathered of persons is written only where the job names them."
    ),
    "core/columns/sorting.py:radix_sort: here[np.int64(np.uint64(numbers[0]) >> shift) & mask] == size -> False": (
        "A digit that all have in common takes a pass, after which numbers stand as before."
    ),
    "core/lattice/bounded_evaluations.py:Evaluations.cannot_improve: > -> >=": "Whether both are the same was asked just before.",
    (
        "core/privacy/holders.py:fewest_too_many: min(fewest, np.int64(person_count - holder_bounds.distinct[column] + 2))"
        " -> np.int64(person_count - holder_bounds.distinct[column] + 2)"
    ): "It is asked first, and l is 1 at least, so that it is no more than one person more than there are.",
    "core/recoding/release_order.py:_ranks_of: < -> <=": "Records sort alike by ranks of entries and of values.",
    "core/units/person_rollups.py:PersonRollUps._keep: < -> <=": "Where every number has a class, each keeps its number.",
    "core/units/person_rollups.py:PersonRollUps._keep: len(there) < len(sums) -> True": "Where every number has a class, each keeps it.",
    "core/units/person_rollups.py:PersonRollUps._keep: 1 -> (1 + 1)": "No cell is of a number without a class, so that nobody looks it up.",
    "core/units/person_rollups.py:PersonRollUps._rolled: < -> <=": (
        "A cell of surely k persons is counted person by person too, which takes longer and gives the same."
    ),
    "core/units/person_rollups.py:PersonRollUps._rolled: < -> <= #1": (
        "A cell of exactly k persons keeps them for coarser cells, which takes longer and gives the same."
    ),
    "core/units/person_rollups.py:PersonRollUps._rolled: 1 -> (1 + 1)": "Persons are numbered from 0, so that -2 is none of them as -1 is.",
    "core/columns/sorting.py:order_of: len(numbers) < FEW -> True": "NumPy orders any number of them alike, which takes longer.",
    "core/columns/sorting.py:order_of: < -> <=": "NumPy orders any number of them alike.",
    (
        "core/columns/sorting.py:order_of: lost and not insertion_sort_order(order, numbers, len(numbers))"
        " -> ((not insertion_sort_order(order, numbers, len(numbers))))"
    ): "Where no bit is left out numbers are in order already, which is looked at once more.",
    "core/lattice/node_classes.py:SuppressionPenalties._map: (qid, level) not in self._coarser -> True": (
        "What is made anew each time is the same, and takes longer."
    ),
    "core/privacy/kernels.py:is_close: < -> <= #1": "A distance that is asked for is t and a slack, so that it is never 0.",
    "core/privacy/kernels.py:is_close: < -> <= #2": "A distance that is asked for is t and a slack, so that it is never 0.",
    "core/privacy/kernels.py:is_close: < -> <= #3": "A distance that is asked for is t and a slack, so that it is never 0.",
    "core/privacy/refusals.py:refusal_discloses: 0 -> (0 + 1) #5": "Both rows of scratch are as good.",
    "core/privacy/refusals.py:refusal_discloses: 0 -> (0 + 1) #2": "Both rows of scratch are as good.",
    "core/privacy/refusals.py:refusal_discloses: 0 -> (0 + 1) #3": "Both rows of scratch are as good.",
    "core/privacy/refusals.py:refusal_discloses: 0 -> (0 + 1) #4": "Both rows of scratch are as good.",
    "core/privacy/refusals.py:disclosing_refusals: counts, present -> present, counts": (
        "Both are scratch of one shape and all 0, and each stays what it is taken for."
    ),
    "core/recoding/release_order.py:text_order: False -> True": "Groups are told apart, whichever number the first one has.",
    (
        "core/recount/shared_ends.py:_numbers: [0], (-int(number.as_tuple().exponent) for number in _exact(values))"
        " -> (-int(number.as_tuple().exponent) for number in _exact(values)), [0]"
    ): "The largest of them is taken, wherever it stands.",
    "core/units/person_rollups.py:PersonRollUps.__init__: < -> <=": (
        "No weight of a class is more than its records, so that 32 bits hold the sums of 2^30 of these too."
    ),
    "core/units/person_rollups.py:PersonRollUps.classes: < -> <=": (
        "A class of surely k persons is counted person by person too, which takes longer, and is found to have k."
    ),
    "core/units/set_tree.py:SetTree.__init__: 1 -> (1 + 1) #1": (
        "Of a node that is not there yet, and of the root, nobody asks for the parent."
    ),
    "core/units/set_tree.py:SetTree.__init__: 1 -> (1 + 1) #2": (
        "Of a node that is not there yet, and of the root, nobody asks for the class."
    ),
    "core/units/set_tree.py:SetTree.__init__: 1 -> (1 + 1) #3": "Nodes are numbered from 0, so that -2 is none of them as -1 is.",
    "core/recount/labels/group_levels.py:_units: 1 -> (1 + 1) #6": "NumPy takes any negative length for the one that is left.",
    "core/lattice/branch_and_bound.py:climb: 2 -> (2 + 1)": (
        "Any number this small puts steps that cost nothing in the order of what they save, before all that cost something."
    ),
    "core/lattice/branch_and_bound.py:_gain: 2 -> (2 + 1)": (
        "Any number this small puts steps that gain nothing in the order of what they lose, after all that gain something."
    ),
    (
        "core/privacy/refusals.py:least_values: max(least, np.int64(ceil(exp(demands.entropies[column]) - SLACK)))"
        " -> np.int64(ceil(exp(demands.entropies[column]) - SLACK))"
    ): "A column has one model of l-diversity, and one of entropy that asks for anything asks for two values.",
    "core/recoding/release_order.py:text_order: < -> <=": "Texts are sorted alike in both ways.",
    "core/recount/labels/label_losses.py:column_loss: prices, counts -> counts, prices": "A product is the same whichever comes first.",
    "core/recount/labels/label_losses.py:_members: 1 -> (1 + 1) #2": (
        "Two pieces are no value where none with a comma is listed, so that the second is left for the next."
    ),
    "core/recount/labels/label_spans.py:is_closed: 0 -> (0 + 1)": "Of bounds that are all open nobody asks whether one belongs to its bin.",
    "core/recount/labels/published_values.py:_errors_of_groups: < -> <=": (
        "A group with people for two is never better than the two, so that it may be looked at or not."
    ),
    "tasks/recount/verdict.py:_values: DISTINCT  -> ": "What a record adds to the people of its value is 0, however often it is added.",
    "core/units/set_tree.py:SetTree._make_room: 2 * len(self._parents) -> len(self._parents) #1": (
        "A table that is fuller takes longer to look into and holds the same, as it has more places than there are nodes."
    ),
    "core/composition/classes.py:JointCells.add: > -> >=": "Cells that just find room are put together once more, and still find it.",
    "core/lattice/bounded_evaluations.py:Evaluations.evaluate: < -> <=": "A rank ends with its node, so that only one node has it.",
    "core/lattice/node_classes.py:SuppressionPenalties._levels: [told[-1]] * len(told) -> [told[-1]]": (
        "NumPy gives one value to all places that it is put into."
    ),
    "core/recoding/release_order.py:_sorted_as_numbers: 1 -> (1 + 1) #1": "Room for a class more changes no order.",
    "core/recount/labels/value_scales.py:texts_with_nulls: is_text_type(values.type) -> False": (
        "A text is its own text, which takes longer to find one by one."
    ),
    "core/units/class_table.py:exact_hierarchy: False -> True": "Nobody writes into these groups.",
    "core/units/digests.py:_digest_texts: 0 -> (0 + 1) #2": "Where all texts are empty, a round over eight bytes finds none.",
    "core/units/digests.py:digest_texts: 8 -> (8 + 1) #1": "A ninth byte is shifted out of the word again.",
    "core/units/pairs.py:positions_of_repeated_keys: 1 -> (1 + 1) #4": "A table of twice as many places holds the same.",
    "tasks/composition/overlaps.py:register_release: 0.0 -> (0.0 + 1)": "The registry puts the moment in its place.",
    "tasks/recount/verdict.py:_labels: False -> True": (
        "A label that is open at both ends ends nowhere, whether it is read as * or as a null."
    ),
    "tasks/lattice/node_recodings.py:_left: finest == coding.finest -> False": (
        "Cells that are rolled up to their own node stay as they are."
    ),
    (
        "tasks/lattice/node_recodings.py:recode_node: masks and rare.any() and not classes.union(rare).failing(promise)[0]"
        " -> ((masks) and (not classes.union(rare).failing(promise)[0]))"
    ): "A union of no classes has no units, and fails.",
    "tasks/lattice/node_recodings.py:recode_node: suppressed, records -> records, suppressed": (
        "Only their product is taken, which is the same whichever comes first."
    ),
    "tasks/lattice/node_recodings.py:recode_node: len(counts), job.privacy.k -> job.privacy.k, len(counts)": (
        "What is published is divided by the product of both, and without a class nothing is published."
    ),
    "tasks/verification/file_forms.py:_is_rewritten: path, copy -> copy, path": "Two files have the same bytes whichever comes first.",
    "tasks/verification/file_forms.py:_is_rewritten: path, copy -> copy, path #1": (
        "Sizes of both files are compared for equality, and both have the same columns."
    ),
    "tasks/verification/file_forms.py:_is_rewritten: path, copy -> copy, path #2": "Two files have the same bytes whichever comes first.",
    "tasks/verification/file_forms.py:_is_rewritten: len(coded) == len(texts) -> False": (
        "What is written in the same way once more differs as it did, which takes longer."
    ),
    "tasks/verification/file_forms.py:_is_rewritten: True -> False": (
        "Without a copy the file could not be read, and both errors are caught alike."
    ),
    "tasks/verification/file_forms.py:_asked: False -> True": "How many threads read a column changes no value.",
    "tasks/verification/file_forms.py:_write_again: False -> True #1": (
        "The schema that is declared takes the place of the one that is stored."
    ),
    "tasks/verification/file_forms.py:_write_again: False -> True #2": "How many threads read a row group changes no value.",
    "tasks/verification/file_forms.py:_write_again: 1 -> (1 + 1)": "A row group with one record is one group, as is one with none.",
    "tasks/writing/two_level_shuffle.py:_plain: 1 -> (1 + 1)": "Columns of a run are taken by their places, and nobody reads their names.",
    "tasks/recount/spreads.py:count_spread: 0 -> (0 + 1) #1": "Only promises that compare classes with the whole have levels.",
    "core/composition/classes.py:count_records_at_risk: 0 -> (0 + 1)": (
        "Joint classes are counted alike where their numbers could be larger."
    ),
    "core/composition/classes.py:count_records_at_risk: 1 -> (1 + 1)": (
        "Joint classes are counted alike where their numbers could be larger."
    ),
    "core/composition/classes.py:count_records_at_risk: int(key.max(initial=0)) + 1 -> int(key.max(initial=0))": (
        "Room for too few numbers grows; how many there could be says what takes less memory."
    ),
    "core/composition/classes.py:count_records_at_risk: int(key.max(initial=0)) + 1 -> 1": (
        "Room for too few numbers grows; how many there could be says what takes less memory."
    ),
    "core/lattice/certificate.py:Examination._bound_finer: 0 -> (0 + 1) #2": (
        "No value of an objective without prices is below 1, so that bounds below 1 all say nothing; above it both ways go down."
    ),
    "core/lattice/certificate.py:Examination._bound_finer: 0 -> (0 + 1) #3": (
        "No value of an objective without prices is below 1, so that bounds below 1 all say nothing; above it both ways go down."
    ),
    "core/lattice/lattice.py:Lattice.at: index, self.root -> self.root, index": ("A sum is the same in either order."),
    "core/lattice/lattice.py:fitting_node: size(finest) <= budget -> False": (
        "Where the finest node fits, all do: one level at a time made finer ends there, which takes longer."
    ),
    "core/privacy/holders.py:fewest_too_many: 0 -> (0 + 1) #2": (
        "The number of values comes with the bound of entropy; where l = 1 sets none, no share falls below it."
    ),
    "core/privacy/holders.py:EntropyHolders.too_many: 1.0 -> (1.0 + 1)": "Where the rest is nothing its part of the entropy is nothing.",
    "core/privacy/holders.py:fewest_too_many: holder_bounds.distinct[column] >= 0 -> True": (
        "Where no number of values is asked for, more holders than there are persons would be too many."
    ),
    "core/privacy/holders.py:fewest_too_many: >= -> >": "Where no value is asked for, no number of holders is too many.",
    "core/privacy/holders.py:fewest_too_many: <= -> < #1": (
        "The bound lies a slack above the share that is asked for, so that no share of persons is just that."
    ),
    "core/privacy/refusals.py:refusal_discloses: 0 -> (0 + 1) #1": (
        "Of a class with nulls no value has all records, and one that all but a null have is alone beside it."
    ),
    (
        "core/privacy/refusals.py:_holding_discloses: not demands.holder_bounds.columns_bounded[column] or sizes[half] == persons[half]"
        " -> ((sizes[half] == persons[half]))"
    ): "Where no bound is set, no number of holders is too many, which takes longer to find out.",
    (
        "core/units/losses.py:journalist: table.population, table.classes -> table.classes, table.population"
    ): "A sum of products is the same whichever comes first.",
    (
        "core/units/losses.py:marketer: table.sizes / table.population, table.classes -> table.classes, table.sizes / table.population"
    ): "A sum of products is the same whichever comes first.",
    "core/units/losses.py:release_risk: fully_suppressed_records, masked_records -> masked_records, fully_suppressed_records": (
        "They are compared for equality, and one is used where they are equal."
    ),
    "core/recount/labels/label_readers.py:_pieces: 0 -> (0 + 1)": "Where there is no value, no pieces together are one.",
    "core/recount/labels/label_readers.py:axis_of_groups: 0 -> (0 + 1) #1": "Of both only the first is taken.",
    'core/recount/labels/label_spans.py:_read_range: one, "" -> "", one': (
        "They are compared for equality, in which their order does not matter."
    ),
    "core/recount/shared_ends.py:_numbers: < -> <= #2": "A whole number and a decimal that are equal are one key.",
    "tasks/composition/by_contents.py:_load: 0 -> (0 + 1)": "Records without a person get numbers of their own, wherever these begin.",
    "tasks/recount/original.py:original_of: <= -> <": "A source has columns besides those that name persons.",
    "tasks/recount/original.py:source_figures: True -> False": "How much memory the database may take changes no count.",
    "tasks/recount/rows.py:RowsInOneDatabase.grouped: 1 -> (1 + 1)": "The number tells tables apart and is shown to nobody.",
    "core/privacy/holders.py:_fewest_uneven: < -> <= #1": (
        "The bound lies a slack below the entropy that is asked for, so that no share of persons has just that."
    ),
    "core/units/losses.py:records_above: table.sizes[exposed], table.classes[exposed] -> table.classes[exposed], table.sizes[exposed]": (
        "A sum of products is the same whichever comes first."
    ),
    "tasks/writing/runs.py:RunWriter._write: 1 -> (1 + 1) #2": "Columns of a run are taken by their places, and nobody reads their names.",
    "core/privacy/refusals.py:disclosing_refusals: 2 -> (2 + 1)": ("A row of scratch more is not used."),
    "core/recoding/release_order.py:_words: < -> <= #1": ("NumPy shifts out all bits of a word that is moved by its width."),
    "core/recoding/release_order.py:_words: 64 -> (64 + 1)": ("NumPy shifts out all bits of a word that is moved by its width."),
    "core/recoding/release_order.py:assign_files: > -> >=": ("A class of one file is spread over one, which takes longer."),
    "core/recoding/release_order.py:assign_files: len(wide) and columns -> ((columns))": (
        "No record has no hash, which takes longer to find out."
    ),
    "core/recoding/release_order.py:ranks_with_null: is_text -> False": ("Arrow sorts texts by their bytes too, which takes longer."),
    "core/recount/labels/group_levels.py:_scaled: 2 * most -> most": (
        "Numbers and edges are a quarter of what 64 bits hold at most, so that their differences fit either way."
    ),
    "core/recount/labels/group_levels.py:_scaled: greatest * factor + 2 * most < LARGEST_INT64_NUMBER -> False": (
        "Python's whole numbers are as exact, and take longer."
    ),
    "core/recount/labels/label_losses.py:_pricer: sets is None -> False": ("Where no label is a set, none is asked as one."),
    'core/recount/labels/label_losses.py:_of_sets: ", " in row[0] -> True': ("One piece is taken for a value whether or not it is listed."),
    "core/recount/labels/label_losses.py:_members: values -> True": (
        "Without a value that has commas no pieces together are one, which takes longer to find out."
    ),
    "core/recount/linked.py:linked_sql: UNION ALL -> UNION": (
        "Rows that are alike are of one person, and are grouped by person right afterwards; of others there is one for each combination."
    ),
    "core/recount/classes.py:risk_of_files: fully_suppressed_records, masked_records -> masked_records, fully_suppressed_records": (
        "They are compared for equality, and one is used where they are equal."
    ),
    "core/units/person_rollups.py:PersonRollUps.classes: > -> >=": (
        "Where the fewest and the most persons are as many, counting them finds as many too, which takes longer."
    ),
    "core/units/source_digests.py:Sketch.of: 4 * SKETCH_SIZE -> SKETCH_SIZE #2": (
        "Any bound is as good where more digests below it are different than a sketch keeps, which is asked before others are left out."
    ),
    "core/lattice/bounded_evaluations.py:Evaluations.evaluate: 2 -> (2 + 1)": ("How many nodes are forgotten at a time changes no count."),
    "core/lattice/bounded_evaluations.py:Evaluations._roll_up: False -> True": (
        "What is counted exactly at once takes longer, and fails as it does by bounds."
    ),
    "core/lattice/certificate.py:Examination._sparse_roots: < -> <=": (
        "Cells that just fill a word are counted as those are that leave room in it."
    ),
    "core/lattice/node_classes.py:_OfPersons.at: exact and (self._of_units or bool(self._wholes)) -> ((exact))": (
        "Counting all persons from the root takes longer, and whether there are k of them is the same."
    ),
    "core/lattice/objectives.py:prices_of: 1 -> (1 + 1)": (
        "The axis of a sensitive column has one level, so that nobody asks what another one costs."
    ),
    "core/lattice/objectives.py:prices_of: 0.0 -> (0.0 + 1)": ("Nobody asks what levels cost below those at which records are counted."),
    "core/lattice/pareto_front.py:find_pareto_nodes: search is None or not seen -> False": (
        "Where no node was seen every list that follows is empty, and so is the answer."
    ),
    "core/lattice/picture.py:_away: 0 -> (0 + 1)": ("All nodes of a row have one height, and only rows of several nodes are asked for it."),
    "core/units/losses.py:ClassSizes.records: self.sizes, self.classes -> self.classes, self.sizes": (
        "A sum of products is the same whichever comes first."
    ),
    "core/recoding/release_order.py:text_order: words - first -> words": (
        "Texts that differ in the first of eight bytes are so far apart that bits are left out, and what is sorted without them is checked."
    ),
    (
        "core/recoding/release_order.py:canonical_order: span >= len(tied) and number < len(columns)"
        " -> ((span >= len(tied)) or (number < len(columns)))"
    ): ("Records that are told apart after each column come into the same order, which takes longer."),
    "core/recoding/release_order.py:_sorted_as_numbers: <= -> <": ("Numbers that just fit into 32 bits sort and unpack alike in 64."),
    "core/recount/classes.py:_same_risk: said[name], value -> value, said[name]": (
        "Two numbers are as close to each other whichever comes first."
    ),
    "core/recount/figures.py:_of_labels: 1.0 -> (1.0 + 1)": ("No penalty is negative, so that -2 is none of them as -1 is."),
    (
        "core/recount/labels/group_levels.py:_groups_of_null: not isinstance(spec, CsvHierarchy | TreeHierarchy) or spec.nulls is None"
        " -> ((not isinstance(spec, CsvHierarchy | TreeHierarchy)))"
    ): ("Values that are listed are texts, and None is none of them."),
    "core/recount/labels/label_spans.py:claimed_spans: 0 -> (0 + 1) #4": ("Room for a group more, of which no label is."),
    "core/recount/labels/label_readers.py:axis_of_groups: spec.nulls is not None -> True": (
        "Values that are listed are texts, and None is none of them."
    ),
    "core/recount/labels/value_scales.py:ValueScale._moved: wide and self.days is not None -> ((wide))": (
        "Only times with a zone are read wide, and these have days."
    ),
    "core/recount/labels/value_scales.py:ValueScale._edge: len(self._edges) < KEPT_ENDS -> False": (
        "What is read anew each time is the same, and takes longer."
    ),
    "core/recount/shared_ends.py:_cuts: < -> <=": (
        "Where the first value is at 0, the first line that is tried is 0: nobody lies before it, and the search goes on from there."
    ),
    "core/units/class_table.py:ClassTable.take: 1 -> (1 + 1)": ("Classes are numbered from 0, so that -2 is none of them as -1 is."),
    "core/units/pairs.py:number_persons: 2 -> (2 + 1)": ("A table that is emptier takes more memory and holds the same."),
    (
        "core/units/set_tree.py:SetTree._make_room: max(nodes, 2 * len(self._parents)) - len(self._parents)"
        " -> max(nodes, 2 * len(self._parents))"
    ): ("A tree that is emptier takes more memory and holds the same."),
    "tasks/composition/earlier.py:_are_common_in_files: <= -> < #1": ("Of two sources of the same files either holds the other's."),
    "tasks/composition/overlaps.py:overlaps_of: 0 -> (0 + 1)": ("Where overlaps are refused there is one such release at least."),
    "tasks/composition/earlier.py:likeness: 2048 -> (2048 + 1)": ("Both are rounded to the same number."),
    "core/privacy/models.py:Closeness.failing: > -> >=": ("No distance of counted shares is t and the slack to the last bit."),
    "core/privacy/models.py:Closeness.distances: 1 -> (1 + 1) #1": ("How many classes are looked at at a time changes no distance."),
    "core/privacy/models.py:Closeness.distances: 1 -> (1 + 1) #2": ("How many classes are looked at at a time changes no distance."),
    "core/privacy/models.py:Closeness.distances: max(BLOCK // max(len(whole), 1), 1) -> 1": (
        "How many classes are looked at at a time changes no distance."
    ),
    "core/privacy/models.py:Closeness.distances: max(len(whole), 1) -> 1": (
        "How many classes are looked at at a time changes no distance."
    ),
    "core/recount/shared_ends.py:_cuts: places[0] < 0 -> True": (
        "Where no value is below 0, the first line that is tried is 0: nobody lies before it, and the search goes on from there."
    ),
    "core/recount/shared_ends.py:_cuts: before[after] - before[first] -> before[after]": (
        "Fewer than twice k are cut nowhere, which is found line by line and takes longer."
    ),
    "core/recount/shared_ends.py:_cuts: 2 * k -> 2": ("Fewer than twice k are cut nowhere, which is found line by line and takes longer."),
    "core/recount/shared_ends.py:_cuts: 2 * k -> k": ("Fewer than twice k are cut nowhere, which is found line by line and takes longer."),
    "core/privacy/models.py:Closeness.distances: min(step, len(counts) - first) -> len(counts) - first": (
        "What lies behind the classes that are looked at is measured again when it is their turn."
    ),
    "core/privacy/models.py:Closeness._moved: 0 -> (0 + 1)": ("One group more, into which no value falls, has nothing to move."),
    "core/recount/shared_ends.py:_cuts: 0 -> (0 + 1) #2": (
        "Where the first value is at 0, the first line that is tried is 0: nobody lies before it, and the search goes on from there."
    ),
    "core/lattice/picture.py:_signs: 2 -> (2 + 1)": "A line begins at 2, and behind its first sign it is far beyond 3.",
    (
        "core/lattice/search.py:Search._evaluate_node: not whole or self._tagged_by is self.promise"
        " -> ((not whole) and (self._tagged_by is self.promise))"
    ): ("What suppression changes of a loss is not used of a bare count, and one model gives one mask however often it is asked."),
    "core/lattice/search.py:Search._evaluate_node: not whole or self._tagged_by is self.promise -> ((self._tagged_by is self.promise))": (
        "What suppression changes of a loss is not used of a bare count."
    ),
    "core/lattice/search.py:Search._evaluate_node: not whole or self._tagged_by is self.promise -> ((not whole))": (
        "One model gives one mask however often it is asked, which takes longer."
    ),
    "core/lattice/search.py:Search._evaluate_node: not whole or self._tagged_by is self.promise -> False": (
        "What suppression changes of a loss is not used of a bare count, and one model gives one mask however often it is asked."
    ),
    "core/lattice/search.py:Search._evaluate_node: surely is failing -> False": "Adding up once more takes longer and gives the same.",
    (
        "tasks/composition/by_contents.py:_check_files: not compared.in_files or (job.is_of_several and not compared.by_persons)"
        " -> ((job.is_of_several and not compared.by_persons))"
    ): ("Where no file is the same no record of one is missing, which takes longer to find out."),
    (
        "core/units/source_digests.py:ValueSets.members: True, (found[1:] != found[:-1]) | (held[1:] != held[:-1])"
        " -> (found[1:] != found[:-1]) | (held[1:] != held[:-1]), True"
    ): ("Of members that are alike the last one is taken in the place of the first."),
    "core/recoding/release_order.py:canonical_record_order: > -> >=": (
        "Records that are sorted by all keys at once come into the same order, which takes longer."
    ),
    "core/recoding/release_order.py:canonical_record_order: len(words) > 1 -> True": (
        "Records that are sorted by all keys at once come into the same order, which takes longer."
    ),
    "core/recount/labels/label_spans.py:claimed_spans: 1 -> (1 + 1) #1": "Any number that is not the first group's begins it.",
    "core/recount/labels/label_spans.py:_members: min(first + axis.pieces, len(pieces)) -> first + axis.pieces": (
        "What would end behind the last piece is what ends there, and no way to the end goes over it."
    ),
    "core/units/losses.py:loss_of: int(counts.sum()) < INT64_SAFE_RECORDS -> False": (
        "Python's whole numbers are as exact, and take longer."
    ),
    "core/units/losses.py:loss_of: < -> <=": "The bound leaves room for a record more.",
    "tasks/writing/runs.py:_packs: 0.0 -> (0.0 + 1)": "Whether a run at the very bound is packed changes no record of it.",
    "tasks/writing/runs.py:_packs: < -> <=": "Whether a run at the very bound is packed changes no record of it.",
    "tasks/recount/truth.py:_record_faults: len(one.released) > 1 or np.any(one.owners == -1) -> True": (
        "A label that covers all values adds the same to each record on either side, which takes longer."
    ),
    "tasks/recount/truth.py:_record_faults: > -> >=": (
        "A label that covers all values adds the same to each record on either side, which takes longer."
    ),
    "tasks/lattice/promises.py:searched_axes: not levels -> False": "Without levels each hierarchy stays as it is, which takes longer.",
    "tasks/lattice/promises.py:check_promise: whole[values], whole -> whole, whole[values]": (
        "Each value of a source's domain occurs, so that all of them are those that occur."
    ),
    "core/recount/labels/label_spans.py:_members: min -> max": "More pieces than any value has are none, which takes longer.",
    "core/recount/labels/label_spans.py:_members: min(first + axis.pieces, len(pieces)) -> len(pieces)": (
        "More pieces than any value has are none, which takes longer."
    ),
    "core/recount/labels/label_spans.py:_members: 1 -> (1 + 1) #3": "More pieces than any value has are none, which takes longer.",
    "core/units/losses.py:group_penalties: 1 -> (1 + 1) #1": "Of one value nothing is lost, and a half of nothing neither.",
    "core/lattice/lattice.py:fitting_node: <= -> <": (
        "Where the finest node fits, all do: one level at a time made finer ends there, which takes longer."
    ),
    "core/privacy/holders.py:fewest_too_many: >= -> > #1": "c is more than 0, so that its numerator is 1 at least.",
    "core/privacy/holders.py:fewest_too_many: 0 -> (0 + 1) #1": "c is more than 0, so that its numerator is 1 at least.",
    "core/recoding/release_order.py:_sorted_as_numbers: len(column.dictionary) + 1 -> 1": (
        "Records that are not sorted as numbers come into the same order, which takes longer."
    ),
    "core/recoding/release_order.py:entry_ranks: distinct -> False": "Entries that are all different rank alike in both ways.",
    "core/recount/labels/label_losses.py:_of_groups: 0 -> (0 + 1) #2": "A group of one value costs as much as one of none.",
    "core/recount/labels/value_scales.py:_whole: 10 -> (10 + 1)": "Either number lies beyond all types.",
    "core/recount/classes.py:population_risk_of_files: > -> >=": "No risk of one in so many is nine of a hundred.",
    "core/recount/classes.py:risk_of_files: > -> >=": "No risk of one in so many is nine of a hundred.",
    "core/units/kernels.py:merge_person_cells: True -> False": "The first visit begins a person, and says so.",
    "core/units/person_rollups.py:PersonRollUps.classes: len(open_) -> True": "Of no class nobody is counted, which takes longer.",
    "core/columns/sorting.py:order_of: len(numbers) - 1 -> len(numbers)": "A bit more than places need holds them, too.",
    "core/columns/sorting.py:order_of: 0 -> (0 + 1)": "What is ordered without its last bit is looked at by comparing.",
    (
        "core/columns/sorting.py:order_of: lost and not insertion_sort_order(order, numbers, len(numbers))"
        " -> ((lost) or (not insertion_sort_order(order, numbers, len(numbers))))"
    ): "NumPy orders any number of them alike, which takes longer.",
    "core/columns/sorting.py:order_of: lost and not insertion_sort_order(order, numbers, len(numbers)) -> ((lost))": (
        "NumPy orders any number of them alike, which takes longer."
    ),
    "core/columns/sorting.py:order_of: lost and not insertion_sort_order(order, numbers, len(numbers)) -> True": (
        "NumPy orders any number of them alike, which takes longer."
    ),
    "core/units/source_digests.py:Sketch.of: others is not None and len(others.digests) >= SKETCH_SIZE -> False": (
        "What would be left out is left out when both sketches are made one, which takes longer."
    ),
    "core/units/source_digests.py:Sketch.of: len(digests) > 4 * SKETCH_SIZE -> False": "The sketch is cut to its size in any case.",
    "core/units/source_digests.py:Sketch.of: 4 -> (4 + 1)": "The sketch is cut to its size in any case.",
    "core/units/source_digests.py:Sketch.of: <= -> < #1": (
        "Where the digests are cut, more of them than a sketch keeps are different without the one at the cut."
    ),
    "core/units/source_digests.py:Sketch.of: 4 * SKETCH_SIZE -> 4 #1": (
        "Whatever digest stands there, others are left out only where more than a sketch keeps are different up to it."
    ),
    "core/units/source_digests.py:Sketch.of: 4 * SKETCH_SIZE -> SKETCH_SIZE #1": (
        "Whatever digest stands there, others are left out only where more than a sketch keeps are different up to it."
    ),
    "core/units/source_digests.py:Sketch.of: 4 * SKETCH_SIZE -> 4 #2": (
        "Whatever digest stands there, others are left out only where more than a sketch keeps are different up to it."
    ),
    "core/units/source_digests.py:Sketch.of: len(np.unique(near)) > SKETCH_SIZE -> False": "The sketch is cut to its size in any case.",
    "core/recount/labels/value_scales.py:_whole: len(text) < SURE_DIGITS and text.isdecimal() -> False": (
        "Decimals are as exact, and take longer."
    ),
    "core/recount/labels/value_scales.py:_whole: < -> <=": "Decimals are as exact, and take longer.",
    "core/recount/labels/value_scales.py:_whole: > -> >=": "Either number lies beyond all types.",
    "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: <= -> <": "Which cells are at hand does not matter.",
    "core/lattice/pareto_front.py:find_pareto_nodes: value < inf -> True": (
        "A node that publishes nothing suppresses all records, which are more than are shown."
    ),
    "core/lattice/search.py:Search._minimise: False -> True": "What was counted already is known, and is looked at once more.",
    "core/recoding/release_order.py:entry_ranks: pa.types.is_string(entries.type) and not entries.null_count -> False": (
        "Entries rank alike in both ways, of which one takes longer."
    ),
    "core/recount/figures.py:_losses: > -> >=": "A class of no records adds nothing.",
    "core/recount/labels/label_losses.py:_of_groups: 0 -> (0 + 1) #1": "Each label that is asked for has its length.",
    "tasks/writing/pseudonyms.py:_originals: secret is None or not entry.vaulted -> ((not entry.vaulted))": (
        "What is looked up in a vault has one: where it lies is its secret."
    ),
    "core/lattice/branch_and_bound.py:BranchAndBound._open: >= -> >": (
        "Regions that cannot be better stay in the heap and are not counted as open: others lie on the stack, where all are looked at too."
    ),
    "core/lattice/objectives.py:_squares: region.alone -> True": (
        "A tighter bound that holds too: what must be suppressed at the finest node has all records of coarser nodes' small cells."
    ),
    "core/privacy/person_refusals.py:_keys: 2 -> (2 + 1)": ("Keys are sorted, and behind 1 any number comes after it."),
    "core/privacy/person_refusals.py:_keys: 1 -> (1 + 1)": ("Values are numbered from 0, so that -2 is before all of them as -1 is."),
    "core/privacy/person_refusals.py:_discloses: 1 -> (1 + 1) #1": "The null stands before all values, by however much.",
    "core/privacy/person_refusals.py:_discloses: 2 -> (2 + 1)": ("Of a third half nothing is asked."),
    "core/privacy/person_refusals.py:_discloses: 2 -> (2 + 1) #1": ("Of a third half nothing is asked."),
    "core/privacy/person_refusals.py:_discloses: 2 -> (2 + 1) #2": ("A third way to fill a half is the second once more."),
    "core/privacy/person_refusals.py:_discloses: bounded -> True": (
        "Where each has one value, those who have it alone are all who have it."
    ),
    "core/privacy/person_refusals.py:_discloses: 1 -> (1 + 1) #2": (
        "Where each has one value, those who have it alone are all who have it."
    ),
    "core/privacy/person_refusals.py:_may_fail: >= -> >": ("A distance that is asked for is t and a slack, so that it is never 0."),
    "core/privacy/person_refusals.py:_may_fail: demands.holder_bounds.columns_bounded[column] -> True": (
        "Of a column without bounds no number of persons is too many."
    ),
    "core/privacy/pseudonyms.py:_replaced: made, values -> values, made": ("Two texts are equal, whichever comes first."),
    "core/recount/labels/value_scales.py:ValueScale.exact: < -> <=": ("A span of no values says as little as none."),
    "tasks/recount/truth.py:_covered: True -> False": ("How many threads join takes memory, and changes no count."),
    "tasks/writing/runs.py:write_run: 1 -> (1 + 1) #1": ("A run of one file more has no records in it."),
    "tasks/writing/runs.py:write_run: 1 -> (1 + 1)": ("A run without records has one file, however few are asked for."),
    "core/lattice/bounded_evaluations.py:Evaluations.bound_within: max(known, self.bound(low, high)) -> self.bound(low, high)": (
        "A bound that is lower holds as well: more nodes are looked at, and the same is chosen."
    ),
    "core/lattice/bounded_evaluations.py:Evaluations.bound_within: max(known, self.bound(low, high)) -> self.bound(low, high) #1": (
        "A bound that is lower holds as well: more nodes are looked at, and the same is chosen."
    ),
    "core/lattice/bounded_evaluations.py:Evaluations.cannot_improve: >= -> >": (
        "Of a region that begins with the best node itself no other is better: it is looked at once more."
    ),
    "core/recoding/release_order.py:_sorted_as_numbers: int(classes.max()) - int(classes.min()) -> int(classes.max())": (
        "Classes are numbered from 0, so that the span is no smaller: records come into the same order, which may take longer."
    ),
    "core/recount/shared_ends.py:_numbers: _whole(origin, used) or 0 -> ((_whole(origin, used)))": (
        "An origin that is not whole was left out before."
    ),
    (
        "tasks/verification/file_forms.py:_is_plain: metadata.created_by == CREATED_BY"
        " and _is_rewritten(path, schema, spill, before=before) -> ((_is_rewritten(path, schema, spill, before=before)))"
    ): ("Which version wrote a file is among its bytes, and those of another are not the same."),
    'tasks/writing/vaults.py:secret_text: place.prefect_block or "" -> ((place.prefect_block))': (
        "A place without a variable names a block, as a job is asked when it is read."
    ),
    "core/recount/untreated_tables.py:column_persons_sql: min( -> max(": ("Where one person has a value, the least is the greatest."),
    "core/recount/untreated_tables.py:table_contents_sql: table.references -> True #1": (
        "Each person of the unit is joined to the one row that is theirs."
    ),
    "tasks/recount/people_of_source.py:people_of_source: 2 * sum(one.nbytes for one in labels) -> 2": (
        "How many bytes the database leaves to what is held beside it says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/people_of_source.py:people_of_source: 2 * sum(one.nbytes for one in labels) -> sum(one.nbytes for one in labels)": (
        "How many bytes the database leaves to what is held beside it says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/people_of_source.py:people_of_source: 2 -> (2 + 1)": (
        "How many bytes the database leaves to what is held beside it says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/truth.py:compare_with_source: 2 * sum(one.nbytes for one in labels) -> 2": (
        "How many bytes the database leaves to what is held beside it says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/truth.py:compare_with_source: 2 * sum(one.nbytes for one in labels) -> sum(one.nbytes for one in labels)": (
        "How many bytes the database leaves to what is held beside it says when it writes to the disk, and changes no count."
    ),
    (
        'tasks/verification/entries.py:entry_faults: {str(parent) for name in files for parent in PurePosixPath(name).parents} - {"."}'
        " -> {str(parent) for name in files for parent in PurePosixPath(name).parents}"
    ): ("No entry of a folder is named as the folder itself."),
    "core/recount/labels/label_losses.py:_of_beginnings: max(len(ends), 1) -> len(ends)": ("Of no labels none is asked for its price."),
    "core/recount/labels/label_readers.py:label_axis_by_levels: 0 -> (0 + 1)": (
        "What a label covers ends behind its first value at least."
    ),
    "core/recount/labels/label_spans.py:read_integer_labels: first + AT_ONCE -> first": (
        "Labels that are not read at once are read one by one, which takes longer."
    ),
    "core/recount/labels/group_levels.py:_scaled: < -> <=": ("The bound leaves room for one more in 64 bits."),
    "core/recount/labels/published_values.py:_best_groups: 1 -> (1 + 1)": "Nothing behind the last entry is read.",
    "core/recount/labels/published_values.py:_best_groups: 1 -> (1 + 1) #1": "Nothing behind the last entry is read.",
    "core/recount/labels/published_values.py:_best_groups: 1 -> (1 + 1) #2": "Before the first value no group begins.",
    "core/recount/labels/published_values.py:_best_groups: sums[back] < np.inf -> True": "What is behind no group is never gone back to.",
    "core/recount/labels/published_values.py:_best_groups: < -> <=": "What is behind no group is never gone back to.",
    "tasks/recount/tables.py:recount_tables: True -> False": (
        "How much memory the database takes says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/tables.py:count_source_rows: True -> False": (
        "How much memory the database takes says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/people_of_source.py:people_of_source: True -> False": (
        "How much memory the database takes says when it writes to the disk, and changes no count."
    ),
    "tasks/recount/tables.py:_claim: False -> True": ("Where labels may be of any level, * is one of them: that of the last level."),
    "tasks/recount/truth.py:_looked_up: <= -> <": (
        "Where all are looked up in one statement, they are so before the others too: the digests are of the same values."
    ),
    "tasks/recount/people_of_source.py:_counted: masked and not whole -> ((not whole))": (
        "Where no record was masked, each is in a class, and none is beside them; files without a record are refused either way."
    ),
    "tasks/recount/people_of_source.py:_fitted: spans.low, spans.high -> spans.high, spans.low": (
        "Where a label begins and where it ends are compared for equality, in which their order does not matter."
    ),
    ("tasks/recount/people_of_source.py:_fitted: label is not None and RANGE.fullmatch(label) -> ((RANGE.fullmatch(label)))"): (
        "A null covers the place behind all values, so that it is never a label of nothing."
    ),
    "tasks/recount/people_of_source.py:_fitted: False -> True": (
        "Each entry is among the values, so that ranks have no null and need no copy."
    ),
    "core/columns/sorting.py:_by_bits: numbers.dtype == np.int64 -> False": (
        "Numbers that are not negative have the same bits with a sign, and a loop of their own."
    ),
    "core/recount/figures.py:_differs: said, found -> found, said": "Two numbers are as close to each other whichever comes first.",
    "core/units/digests.py:_digested: 1 -> (1 + 1)": "A digest behind the last value belongs to no record, and nobody looks at it.",
    "core/units/digests.py:_digested: 0 -> (0 + 1)": "The digest of a null is not looked at.",
    "core/units/digests.py:_digested: 0 -> (0 + 1) #1": "A digest behind the last value belongs to no record, and nobody looks at it.",
    "core/units/digests.py:_digested: column.cast(pa.float64()), pa.scalar(0.0) -> pa.scalar(0.0), column.cast(pa.float64())": (
        "A sum is the same in either order."
    ),
    'core/units/digests.py:_digested: data or b"" -> ((data))': "What Arrow has cast has a buffer of bytes, empty or not.",
    "core/units/pairs.py:positions_of_repeated_keys: 0 -> (0 + 1)": "A bound that is larger adds a bit that all have in common.",
    "core/units/pairs.py:positions_of_repeated_keys: 2 -> (2 + 1)": "A table that is emptier takes more memory and holds the same.",
    "core/units/pairs.py:positions_of_repeated_keys: 2 * len(shared) -> len(shared)": (
        "A table that is fuller takes longer to look into and holds the same, as one place at least stays free."
    ),
    "core/units/persons.py:CellPersons.spread: 1 -> (1 + 1)": "Any negative number is left out.",
    "core/privacy/kernels.py:class_keeps: demands.entropies[column] >= 0 -> True": (
        "No entropy is below a bound that is negative, which takes longer to find out."
    ),
    "core/privacy/kernels.py:class_keeps: >= -> > #1": "A bound is a logarithm and a slack, so that it is never 0.",
    "core/privacy/kernels.py:class_keeps: < -> <= #1": "No entropy of counts is the bound and the slack to the last bit.",
    "core/privacy/kernels.py:class_keeps: >= -> > #2": "l is 1 at least where it is asked for.",
    "core/privacy/kernels.py:class_keeps: 0 -> (0 + 1) #4": "l is 1 at least where it is asked for.",
    "core/recoding/release_order.py:in_canonical_order: (found := _sorted_as_numbers(classes, columns)) is not None -> False": (
        "Records that are not sorted as numbers come into the same order, which takes longer."
    ),
    (
        "core/recoding/release_order.py:_sorted_as_numbers: not len(classes) or not all(isinstance(column,"
        " pa.DictionaryArray) for column in columns)"
        " -> True"
    ): ("Records that are not sorted as numbers come into the same order, which takes longer."),
    (
        "core/recoding/release_order.py:_sorted_as_numbers: any(size != len(column.dictionary) + 1 for (_, size),"
        " column in zip(ranks, columns, strict=True))"
        " -> True"
    ): ("Records that are not sorted as numbers come into the same order, which takes longer."),
    "core/recoding/release_order.py:_sorted_as_numbers: 1 -> (1 + 1)": (
        "Records that are not sorted as numbers come into the same order, which takes longer."
    ),
    "core/recoding/release_order.py:_sorted_as_numbers: span > 1 << 62 -> True": (
        "Records that are not sorted as numbers come into the same order, which takes longer."
    ),
    "core/recoding/release_order.py:_sorted_as_numbers: 1 -> (1 + 1) #2": "Numbers of one bit more fit into 64 bits, too.",
    "core/recoding/release_order.py:_sorted_as_numbers: 62 -> (62 + 1)": "Numbers of one bit more fit into 64 bits, too.",
    "core/recoding/release_order.py:_sorted_as_numbers: False -> True": (
        "Nobody looks at the numbers as they were, of which a copy takes memory."
    ),
    "core/recoding/release_order.py:_entries_at: 1 -> (1 + 1)": "A place that no rank has is not looked at.",
    "core/recoding/release_order.py:_entries_at: column.indices.null_count -> True": "Where no record has a null, none has its rank.",
    (
        "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: self.root.cells <= MOST_CELLS_REREAD and self.persons is None"
        " -> ((self.persons is None))"
    ): ("A tighter bound holds as well: all cells of the root are read for it, which takes longer."),
    "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: self.prices and self.prices.extra -> ((self.prices))": (
        "Where no suppressed record costs more nothing is added, which takes longer to find out."
    ),
    (
        "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: finer and self._penalties_of_suppression"
        " -> ((finer) or (self._penalties_of_suppression))"
    ): ("Without penalties nobody looks into cells, and where finer ones are not looked at all say the same."),
    "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: finer and self._penalties_of_suppression -> ((finer))": (
        "Without penalties nobody looks into cells."
    ),
    (
        "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: finer and self._penalties_of_suppression"
        " -> ((self._penalties_of_suppression))"
    ): ("Where finer cells are not looked at all say the same."),
    "core/lattice/bounded_evaluations.py:Evaluations.__post_init__: finer and self._penalties_of_suppression -> True": (
        "Without penalties nobody looks into cells, and where finer ones are not looked at all say the same."
    ),
    "tasks/recount/truth.py:_joint_faults: more or unlike -> True": (
        "Where records are those of the source, what single columns hold is not told, and takes longer to count."
    ),
    "tasks/recount/truth.py:_joint_faults: int(more), int(unlike) -> int(unlike), int(more)": "Only their sum is told.",
    "tasks/recount/truth.py:_joint_faults: not parts -> False": (
        "Of no columns all records are alike, and no labels are of more records than the source has."
    ),
    "tasks/recount/truth.py:_joint_faults: True -> False": "How many threads count records takes memory, and changes no count.",
    "tasks/recount/truth.py:_joint_faults: True -> False #1": "How many threads count records takes memory, and changes no count.",
    "tasks/recount/truth.py:_record_faults: sides.unmasked != sides.rows.release and not faults -> ((not faults))": (
        "Where no record is masked, whole records were those of the source, and so are parts of them, which takes longer to find out."
    ),
    "tasks/recount/truth.py:_part: one.is_released and sides.types[one.name] == sides.published[one.name] -> False": (
        "A label that is its value is looked up as others are, which takes longer."
    ),
    'tasks/recount/verdict.py:_pseudonym_faults: "release", "source" -> "source", "release"': (
        "Of each side it is only asked whether it is named."
    ),
    "tasks/writing/runs.py:RunWriter._write: 1 -> (1 + 1) #3": "Columns of a run are taken by their places, and nobody reads their names.",
    "tasks/writing/runs.py:RunWriter._write: part.num_rows -> True": "A batch without records adds none.",
    "tasks/writing/runs.py:RunWriter._write: 0 -> (0 + 1) #3": "How many records a pass has changes no record.",
    "tasks/writing/runs.py:RunWriter._write: 0 -> (0 + 1) #4": "Which bytes hold the numbers of a run changes no record of it.",
    "tasks/writing/runs.py:RunWriter._write: 1 -> (1 + 1) #1": "Which bytes hold the numbers of a run changes no record of it.",
    "tasks/writing/runs.py:RunWriter._write: 0 -> (0 + 1) #5": "Which bytes hold the numbers of a run changes no record of it.",
    (
        "tasks/writing/runs.py:RunWriter._write: not (narrow and _are_numbers(arrays)) and _packs(arrays)"
        " -> ((not (narrow and _are_numbers(arrays))))"
    ): ("Whether a run is packed changes no record of it."),
    "tasks/writing/runs.py:_narrow: < -> <=": "Which bytes hold the numbers of a run changes no record of it.",
    "tasks/writing/runs.py:_narrow: 1 -> (1 + 1) #1": "Which bytes hold the numbers of a run changes no record of it.",
    "tasks/writing/runs.py:_plain_bytes: 0 -> (0 + 1)": "How many records a pass has changes no record.",
    "tasks/writing/runs.py:_plain_bytes: 0 -> (0 + 1) #1": "How many records a pass has changes no record.",
    (
        "tasks/writing/runs.py:_plain_bytes: max(int(column.nbytes), pc.sum(lengths.take(column.indices)).as_py() or 0)"
        " -> pc.sum(lengths.take(column.indices)).as_py() or 0"
    ): ("How many records a pass has changes no record."),
    "tasks/writing/runs.py:_check_unpacked: column.dictionary.nbytes * len(column) <= MOST_UNPACKED -> False": (
        "What it is too little for is added up text by text, which takes longer."
    ),
    "tasks/writing/runs.py:_check_unpacked: <= -> <": "What it is too little for is added up text by text, which takes longer.",
    "tasks/writing/runs.py:_check_unpacked: (pc.max(lengths).as_py() or 0) * len(column) > MOST_UNPACKED -> True": (
        "What it is too little for is added up text by text, which takes longer."
    ),
    "tasks/writing/runs.py:_check_unpacked: > -> >=": "What it is too little for is added up text by text, which takes longer.",
    "tasks/writing/runs.py:_check_unpacked: 0 -> (0 + 1) #1": "One byte is as little as none.",
    "tasks/writing/runs.py:_payload: encoded and others -> ((encoded) or (others))": (
        "Where all parts are of one kind, each record is in its place already."
    ),
    "tasks/writing/runs.py:_payload: encoded and others -> ((encoded))": (
        "Where all parts are of one kind, each record is in its place already."
    ),
    "tasks/writing/runs.py:_payload: encoded and others -> ((others))": (
        "Where all parts are of one kind, each record is in its place already."
    ),
    "tasks/writing/runs.py:_payload: encoded and others -> True": "Where all parts are of one kind, each record is in its place already.",
    "tasks/writing/runs.py:_together: len(parts) == 1 -> False": "One part is put together with nothing, which takes longer.",
    "tasks/writing/runs.py:_only_used: len(used) == len(column.dictionary) -> False": (
        "All entries are taken one by one, which takes longer."
    ),
    "tasks/writing/runs.py:_only_used: 1 -> (1 + 1) #4": "A place behind that of nulls is not looked at.",
    "tasks/writing/runs.py:_only_used: column.indices.null_count -> True": "Where no record has a null, none is at its place.",
    "core/lattice/bounded_evaluations.py:Evaluations.rise: 0.0 -> (0.0 + 1)": (
        "Where rises are not known all are alike, and they are only compared with each other."
    ),
    "core/units/set_tree.py:SetTree._make_room: 2 -> (2 + 1)": "A tree that is emptier takes more memory and holds the same.",
    (
        "core/units/repeats.py:character_marks: not other and pc.min(pc.binary_length(texts)).as_py() <= max(map(len, MISSING))"
        " -> ((not other))"
    ): ("Texts that are all too long to be one of these words are looked for among them, which takes longer."),
    "core/recount/labels/label_spans.py:_beside_null: members, null -> null, members": "Positions are sorted right afterwards.",
    (
        "tasks/composition/by_contents.py:compare_by_contents: compared.by_contents and not any(part.in_fragment for side in sides for part"
        " in side) -> ((compared.by_contents))"
    ): ("A release is made of chunks or of fragments, and a fragment names no file that another release could have."),
}
"""By the name of a mutant."""
