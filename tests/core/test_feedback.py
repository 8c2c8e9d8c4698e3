"""The data of the example with embeddings: generated, or read from MovieLens."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from hvd_deepreduce.demo import feedback


def test_generated_feedback_is_seeded_and_skewed() -> None:
    data = feedback.generate(300, 200, seed=1)
    again, other = feedback.generate(300, 200, seed=1), feedback.generate(300, 200, seed=2)
    np.testing.assert_array_equal(data.train_items, again.train_items)
    assert not np.array_equal(data.train_items[:1000], other.train_items[:1000])
    pairs = data.train_users * 200 + data.train_items
    assert len(np.unique(pairs)) == len(pairs)
    taken = np.sort(np.bincount(data.train_items, minlength=200))[::-1]
    assert taken[:10].sum() > 5 * taken[100:110].sum()


def test_what_is_held_out_is_in_no_training_pair() -> None:
    data = feedback.generate(300, 200, seed=1)
    assert data.test_items.shape == (len(data.test_users), 100)
    known = set(zip(data.train_users.tolist(), data.train_items.tolist(), strict=True))
    for user, items in zip(data.test_users.tolist(), data.test_items.tolist(), strict=True):
        assert not known & {(user, item) for item in items}
        assert items[0] not in items[1:]


def test_batches_of_all_ranks_share_an_epoch() -> None:
    data = feedback.generate(60, 150, seed=0)
    share = len(data.train_users) // 2
    steps = share // 50
    seen = []
    for rank in range(2):
        for batch in islice(feedback.batches(data, 50, 3, rank, 2, seed=5), steps):
            assert batch.labels.tolist() == [1] * 50 + [0] * 150
            np.testing.assert_array_equal(batch.users[:50], batch.users[50:100])
            assert 0 <= batch.items.min() <= batch.items.max() < 150
            seen += zip(batch.users[:50].tolist(), batch.items[:50].tolist(), strict=True)
    assert len(set(seen)) == len(seen)
    with pytest.raises(feedback.DataError, match="a batch of 100,000 is more than"):
        next(feedback.batches(data, 100_000, 3, 0, 2, seed=5))


def test_hits_are_counted_among_the_best_ten() -> None:
    scores = np.zeros((3, 100))
    scores[0, 0] = 1.0  # the best
    scores[1, 1:10] = 1.0
    scores[1, 0], scores[1, 10:] = 0.5, 0.1  # the tenth
    scores[2, 1:11] = 1.0
    scores[2, 0] = 0.5  # the eleventh
    assert feedback.hits(scores) == 2
    assert feedback.hits(np.zeros((1, 100))) == 0, "a model that tells nothing apart has no hits"


RATINGS = [(user, item, 100 * user + item) for user in range(1, 5) for item in range(1, 200) if item % user == 0]
FORMS = {
    "u.data": [f"{user}\t{item}\t3\t{time}" for user, item, time in RATINGS],
    "ratings.dat": [f"{user}::{item}::5::{time}" for user, item, time in RATINGS],
    "ratings.csv": ["userId,movieId,rating,timestamp", *(f"{u},{i},3.5,{t}" for u, i, t in RATINGS)],
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_movielens_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("\n".join(FORMS[name]) + "\n")
    data = feedback.load(path)
    assert (data.users, data.items) == (4, 199)
    # The first user took all, so nothing is left to test with; of the others the latest is held out.
    assert data.test_users.tolist() == [1, 2, 3]
    assert (data.test_items[:, 0] + 1).tolist() == [198, 198, 196]
    assert len(data.train_users) == len(RATINGS) - 3


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no ratings"), ("1 2 3", "user, item, rating and time"), ("1\t2\t3\t4\n1\tx\t3\t4", "lines of user")],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "u.data"
    path.write_text(text)
    with pytest.raises(feedback.DataError, match=message):
        feedback.load(path)
    with pytest.raises(feedback.DataError, match="No such file"):
        feedback.load(tmp_path / "none")
    path.write_text("1\t2\t3\t4\n")
    with pytest.raises(feedback.DataError, match="more than 99 are needed"):
        feedback.load(path)
