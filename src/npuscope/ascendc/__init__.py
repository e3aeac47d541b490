"""The Ascend C device library in terms of the instructions of `npuscope.npu`: API levels, pipes, queues, adv layer.

Each file holds one family; every function is registered for the operation it carries out
(:mod:`npuscope.ascendc.registry`). A new file is found by listing this folder.
"""
