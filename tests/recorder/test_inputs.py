# SPDX-License-Identifier: Apache-2.0
"""Images of every family: shapes against hand counts, token counts against the library's own."""

import glob
import json
import os
import subprocess
import unittest

from recorder.config import load
from recorder.errors import RecorderError
from recorder.inputs import families
from recorder.inputs.layout import Request
from recorder.inputs.sequence import arrange

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIGS = os.path.join(ROOT, "tests", "data", "configs")
SHIPPED = os.path.join(ROOT, "models", "vlm")
OF_OWN_CODE = ("kimi_vl",)  # types of committed rows that the recorder ran once their classes had been registered
PROGRAM = os.environ.get("VLMEST_PROGRAM")


def document(name: str) -> dict:
    folder = CONFIGS if os.path.exists(os.path.join(CONFIGS, name + ".json")) else SHIPPED
    return load(os.path.join(folder, name + ".json")).document


def images(name: str, height: int, width: int, batch: int = 1, count: int = 1, text: int = 0):
    return families.lay_out(Request(document(name), batch, count, height, width, text))


def shapes(laid_out) -> dict:
    return {name: t.shape for name, t in laid_out.tensors.items()}


class Shapes(unittest.TestCase):
    def test_square(self):
        i = images("llava-1.5-7b", 480, 640, batch=2, count=3)
        self.assertEqual((i.tokens, shapes(i)), (576, {"pixel_values": (6, 3, 336, 336)}))

    def test_anyres_has_a_tile_for_the_whole_image_and_a_newline_for_each_row(self):
        i = images("llava-next-vicuna-7b", 672, 672, batch=2)
        self.assertEqual(shapes(i), {"pixel_values": (2, 5, 3, 336, 336), "image_sizes": (2, 2)})
        self.assertEqual(i.tokens, 576 + 48 * 49)
        self.assertEqual(i.tensors["image_sizes"].last, (672, 672))

    def test_anyres_of_fewer_features_than_patches(self):
        # 384 x 700 lies on two tiles of 24 patches a side, each half as many features a side
        i = images("granite4-vision", 384, 700, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"]), (420, (2, 3, 3, 384, 384)))

    def test_anyres_counts_no_padding(self):
        self.assertEqual(images("llava-next-vicuna-7b", 480, 640).tokens, 2340)

    def test_patches_of_the_native_size(self):
        i = images("qwen2.5-vl-3b", 420, 364, batch=2)
        self.assertEqual(shapes(i), {"pixel_values": (2 * 30 * 26, 3 * 2 * 14 * 14), "image_grid_thw": (2, 3)})
        self.assertEqual((i.tokens, i.tensors["image_grid_thw"].last), (15 * 13, (1, 30, 26)))

    def test_patches_of_towers_without_deepstack(self):
        for name in ("qwen3.5-4b", "qwen3.5-35b-a3b"):
            i = images(name, 512, 768, batch=2)
            self.assertEqual(shapes(i), {"pixel_values": (2 * 32 * 48, 3 * 2 * 16 * 16), "image_grid_thw": (2, 3)})
            self.assertEqual((i.tokens, i.token_types), (16 * 24, "mm_token_type_ids"))

    def test_rows_of_patches_padded_to_one_length(self):
        i = images("lfm2-vl-450m", 512, 384, batch=2)
        rows = {"pixel_values": (2, 1024, 768), "pixel_attention_mask": (2, 1024), "spatial_shapes": (2, 2)}
        self.assertEqual((i.tokens, shapes(i)), (16 * 12, rows))
        self.assertEqual(i.tensors["spatial_shapes"].last, ((32, 24), (32, 24)))
        self.assertEqual(sum(i.tensors["pixel_attention_mask"].last[0]), 32 * 24)

    def test_large_ones_in_tiles_and_as_a_whole(self):
        i = images("lfm2-vl-450m", 1024, 1536)
        # 2 x 3 tiles of 16 x 16 features, 13 x 19 of the whole
        self.assertEqual((i.tokens, i.tensors["pixel_values"].shape), (6 * 256 + 13 * 19, (7, 1024, 768)))

    def test_video_models_with_images(self):
        self.assertEqual(images("llava-next-video-7b", 672, 672).tokens, 576 + 48 * 49)
        i = images("video-llava-7b", 480, 640, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (256, {"pixel_values_images": (2, 3, 224, 224)}))

    def test_tiles_that_cover_an_image(self):
        i = images("ovis2-1b", 448, 448, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (256, {"pixel_values": (2, 3, 448, 448)}))
        self.assertEqual(images("ovis2-1b", 896, 448).tensors["pixel_values"].shape, (3, 3, 448, 448))

    def test_squares_padded_behind_the_shorter_side(self):
        i = images("aria", 480, 640, batch=2)
        square = (2, 980, 980)
        self.assertEqual((i.tokens, shapes(i)), (256, {"pixel_values": (2, 3, 980, 980), "pixel_mask": square}))
        mask = i.tensors["pixel_mask"].last
        self.assertEqual((sum(map(any, mask)), sum(mask[0]), len(mask)), (735, 980, 980))
        self.assertEqual(sum(images("aria", 2000, 37).tensors["pixel_mask"].last[0]), 336)

    def test_quarters_and_the_whole_padded_to_one_size(self):
        i = images("idefics2-8b", 980, 735, batch=2, count=2)
        self.assertEqual((i.tokens, i.tensors["pixel_values"].shape), (5 * 64, (2, 10, 3, 980, 735)))
        # quarters of 490 x 367 and 490 x 368, of which the narrower side becomes 378
        mask = i.tensors["pixel_attention_mask"]
        self.assertEqual((mask.shape, len(mask.last)), ((2, 10, 980, 735), 10))
        self.assertEqual([sum(map(sum, piece)) for piece in mask.last[:5]], [490 * 378] * 4 + [980 * 735])
        self.assertEqual(images("idefics2-8b", 200, 300).tensors["pixel_attention_mask"].last, (1,) * 378)

    def test_positions_of_the_last_map_and_their_mean(self):
        i = images("florence-2-base", 768, 768, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (577, {"pixel_values": (2, 3, 768, 768)}))
    def test_patches_of_single_frames(self):
        i = images("paddleocr-vl", 448, 672, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"], i.axes), (16 * 24, (2 * 32 * 48, 3, 14, 14), 3))
        i = images("hunyuan-ocr", 512, 768)  # a token behind each row, one at either end
        self.assertEqual((i.tokens, shapes(i)["pixel_values"], i.axes), (16 * 25 + 2, (32 * 48, 3 * 16 * 16), 4))
        i = images("video-llama-3", 224, 336, batch=2)
        self.assertEqual((i.tokens, shapes(i)["image_merge_sizes"]), (16 * 24, (2,)))

    def test_slices_stand_in_one_row_of_patches(self):
        i = images("minicpm-v-4.6", 896, 896, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"]), (5 * 64, (1, 3, 14, 14 * 2 * 5 * 32 * 32)))
        self.assertEqual((shapes(i)["target_sizes"], i.tensors["target_sizes"].last), ((10, 2), ((32, 32),) * 10))

    def test_text_of_one_axis_has_no_marks(self):
        i = images("exaone-4.5", 420, 364)
        self.assertEqual((i.tokens, i.token_types, i.axes), (15 * 13, "", 0))
        i = images("minimax-m3", 480, 640, batch=2)
        self.assertEqual((i.tokens, i.token_types, i.axes), (17 * 23, "", 0))
        self.assertEqual(shapes(i), {"pixel_values": (2 * 34 * 46, 3 * 2 * 14 * 14), "image_grid_thw": (2, 3)})
        self.assertEqual(images("minimax-m3", 2000, 2000).tokens, 576)

    def test_patches_padded_to_a_budget(self):
        i = images("gemma-4-e2b", 768, 1024, batch=2)
        self.assertEqual(shapes(i), {"pixel_values": (2, 2520, 768), "image_position_ids": (2, 2520, 2)})
        places = i.tensors["image_position_ids"].last
        # 14 x 19 features of 3 x 3 patches each
        self.assertEqual((i.tokens, len(places), places[57], places[42 * 57 - 1]), (266, 2520, (0, 1), (56, 41)))
        self.assertEqual(set(places[42 * 57 :]), {(-1, -1)})

    def test_squares_of_a_size_that_no_config_has(self):
        i = images("gemma-3n-variant", 300, 900, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (256, {"pixel_values": (2, 3, 768, 768)}))
        self.assertEqual(i.token_types, "token_type_ids")

    def test_squares_behind_which_strides_leave_the_tokens(self):
        i = images("fastvlm-0.5b", 300, 900, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (256, {"pixel_values": (2, 3, 1024, 1024)}))
        self.assertEqual(images("fastvlm-variant", 300, 900).tokens, 1024)

    def test_crops_that_cover_a_picture_and_the_whole_of_it(self):
        # two rows of two crops; 636 of the 896 rows of pixels hold the picture, the rest is padding
        i = images("phi-4-multimodal", 500, 704, batch=2)
        self.assertEqual(shapes(i)["image_pixel_values"], (2, 5, 3, 448, 448))
        self.assertEqual(shapes(i)["image_attention_mask"], (2, 5, 32, 32))
        self.assertEqual(i.tensors["image_sizes"].last, (896, 896))
        mask = i.tensors["image_attention_mask"].last
        self.assertEqual([sum(map(sum, crop)) for crop in mask], [1024, 1024, 1024, 14 * 32, 14 * 32])
        self.assertEqual(i.tokens, 16 * 17 + 1 + 23 * 33)

    def test_windows_beside_the_whole_of_a_picture(self):
        i = images("step-3.7-flash", 1080, 1920, batch=2)
        self.assertEqual(shapes(i)["pixel_values"], (2, 3, 728, 728))
        self.assertEqual(shapes(i)["pixel_values_local"], (16, 3, 504, 504))
        self.assertEqual(i.tensors["num_local_patches"].last, (8,))
        self.assertEqual(i.tokens, 169 + 8 * 81)
        self.assertNotIn("pixel_values_local", shapes(images("step-3.7-flash", 500, 700)))
        self.assertEqual(images("step-3.7-flash", 300, 700).tokens, 169 + 3 * 81)  # windows of its shorter side

    def test_a_thumbnail_and_the_tiles_in_which_a_picture_is_largest(self):
        i = images("perception-lm-1b", 480, 640, batch=2)
        self.assertEqual(shapes(i)["pixel_values"], (2, 36, 3, 448, 448))
        self.assertEqual(i.tokens, 36 * 256)
        self.assertEqual(shapes(images("perception-lm-8b", 900, 9000))["pixel_values"], (1, 11, 3, 448, 448))
        self.assertEqual(images("perception-lm-8b", 4480, 1344).tokens, (10 * 3 + 1) * 256)  # as large in 12 by 3

    def test_a_picture_of_too_many_crops_has_the_nearest_aspect_ratio(self):
        i = images("phi-4-multimodal", 3000, 4000)
        self.assertEqual(shapes(i)["image_pixel_values"], (1, 13, 3, 448, 448))

    def test_squares_of_patches_padded_to_a_budget(self):
        i = images("gemma-4-12b", 768, 1024)
        self.assertEqual(shapes(i), {"pixel_values": (1, 280, 6912), "image_position_ids": (1, 280, 2)})
        self.assertEqual((i.tokens, i.token_types, i.axes), (266, "mm_token_type_ids", 0))

    def test_a_decoder_beside_the_sequence(self):
        for name, decoder in (("blip2-flan-t5-xl", True), ("blip2-opt-2.7b", False)):
            i = images(name, 336, 336, batch=2)
            self.assertEqual((i.tokens, i.decoder, shapes(i)), (32, decoder, {"pixel_values": (2, 3, 224, 224)}))

    def test_an_instruction_beside_each_picture(self):
        for name, decoder in (("instructblip-flan-t5-xl", True), ("instructblip-vicuna-7b", False)):
            i = images(name, 336, 336, batch=2, text=40)
            self.assertEqual((i.tokens, i.decoder), (32, decoder))
            self.assertEqual(shapes(i)["pixel_values"], (2, 3, 224, 224))
            for key in ("qformer_input_ids", "qformer_attention_mask"):
                self.assertEqual(shapes(i)[key], (2, 40))
                self.assertEqual(shapes(images(name, 336, 336, text=600))[key], (1, 512))
        with self.assertRaises(RecorderError):
            images("instructblip-vicuna-7b", 336, 336, count=2)

    def test_rows_of_patches(self):
        i = images("pixtral-12b", 500, 750)
        self.assertEqual((i.tokens, i.tensors["image_sizes"].last), (32 * 47, (512, 752)))

    def test_tiles_and_thumbnail(self):
        self.assertEqual(shapes(images("internvl3-2b", 448, 896, count=2))["pixel_values"], (2 * 3, 3, 448, 448))
        self.assertEqual(shapes(images("internvl3-2b", 448, 448))["pixel_values"], (1, 3, 448, 448))
        # 448 x 896 is one row of two tiles, and one more shows the whole image
        i = images("qianfan-ocr", 448, 896, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (3 * 256, {"pixel_values": (2 * 3, 3, 448, 448)}))
        self.assertEqual(shapes(images("idefics3-8b", 336, 336, count=2))["pixel_values"], (1, 34, 3, 364, 364))

    def test_patches_that_fill_no_square_are_left_out(self):
        i = images("lighton-ocr", 308, 483, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"]), (11 * 17, (2, 3, 308, 490)))
        self.assertEqual(i.tensors["image_sizes"].last, (308, 490))

    def test_patches_are_limited_and_filled_up_to_merged_ones(self):
        i = images("kimi-k2.5-cut", 308, 483, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"]), (11 * 18, (2 * 22 * 36, 3, 14, 14)))
        self.assertEqual(i.tensors["image_grid_thw"].last, (1, 22, 36))
        self.assertEqual(images("kimi-k2.5-cut", 4000, 4000).tokens, 65 * 65)

    def test_grids_nearest_to_the_aspect_ratio(self):
        i = images("muse-glimmer", 672, 448, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"]), (24 * 16, (2 * 48 * 32, 1176)))
        self.assertEqual(i.tensors["image_grid_thw"].last, (1, 48, 32))
        self.assertEqual(images("muse-glimmer", 10, 2000).tokens, 72)
        self.assertEqual(images("muse-glimmer", 4000, 4000).tokens, 64 * 64)

    def test_single_frames_whose_ends_are_seen(self):
        i = images("ernie4.5-vl-variant", 150, 210, batch=2)
        self.assertEqual((i.tokens, shapes(i)["pixel_values"]), (5 * 8, (2 * 10 * 16, 588)))
        self.assertEqual(i.tensors["image_grid_thw"].last, (1, 10, 16))
        self.assertEqual((i.token_types, i.expert_types), ("mm_token_type_ids", "moe_mm_token_type_ids"))

    def test_tiles_of_the_grid_that_scales_least(self):
        # 600 x 900 fits 2 x 2 tiles of 512, enlarged least, and one more shows the whole image
        i = images("cohere2-vision", 600, 900, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (5 * 256, {"pixel_values": (10, 3, 512, 512)}))
        self.assertEqual(images("cohere2-vision", 512, 512).tokens, 256)

    def test_tiles_of_that_grid_folded_two_by_two(self):
        # 448 x 672 is 2 x 2 tiles of 336, and one more shows the whole image
        i = images("llama4-scout", 448, 672, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (5 * 144, {"pixel_values": (10, 3, 336, 336)}))
        self.assertEqual(images("llama4-scout", 336, 336).tokens, 144)

    def test_a_map_that_is_halved_twice(self):
        i = images("got-ocr2", 480, 640, batch=2)
        self.assertEqual((i.tokens, shapes(i)), (256, {"pixel_values": (2, 3, 1024, 1024)}))
        self.assertEqual(images("got-ocr2-odd", 480, 640).tokens, 49)

    def test_squares_of_two_towers(self):
        i = images("deepseek-vl-hybrid", 480, 640, batch=2)
        squares = {"pixel_values": (2, 3, 384, 384), "high_res_pixel_values": (2, 3, 1024, 1024)}
        self.assertEqual((i.tokens, shapes(i)), (576, squares))

    def test_tiles_beside_a_whole_view(self):
        # 1536 x 768 is two tiles of 768, one below the other; 640 x 640 is less than one
        i = images("deepseek-ocr2", 1536, 768, batch=2)
        self.assertEqual((i.tokens, i.tensors["num_local_patches"].last), (256 + 2 * 144 + 1, (2,)))
        self.assertEqual(i.tensors["pixel_values_local"].shape, (4, 3, 768, 768))
        i = images("deepseek-ocr2", 640, 640)
        self.assertEqual((i.tokens, i.tensors["num_local_patches"].last), (257, (0,)))
        self.assertNotIn("pixel_values_local", i.tensors)

    def test_cross_attention_sees_every_tile(self):
        i = images("llama-3.2-11b-vision", 560, 1120, count=2)
        self.assertEqual((i.tokens, i.cross_tiles), (1, (2, 4)))
        self.assertEqual(shapes(i)["pixel_values"], (1, 2, 4, 3, 560, 560))
        # one row of two tiles is the second of (1,1) (1,2) (1,3) (1,4) (2,1) ...
        self.assertEqual(i.tensors["aspect_ratio_ids"].last, (2, 2))
        self.assertEqual(i.tensors["aspect_ratio_mask"].last, (1, 1, 0, 0))


class Placeholders(unittest.TestCase):
    def test_what_the_file_or_its_class_says_stands_where_it_can_be_embedded(self):
        said = {"model_type": "idefics3", "image_token_id": 49190}
        self.assertEqual(families.placeholder(said, 49280), ("image_token_id", 49190))
        of_the_class = {"model_type": "idefics3", "image_token_id": 128257}
        self.assertEqual(families.placeholder(of_the_class, 49280), ("image_token_id", 49279))

    def test_some_classes_embed_none(self):
        outside = {"model_type": "gemma3", "image_token_index": 262144}
        self.assertEqual(families.placeholder(outside, 262144), ("image_token_index", 262144))

    def test_it_may_stand_in_the_towers_part(self):
        inside = {"model_type": "phi4_multimodal", "vision_config": {"image_token_id": 200010}}
        self.assertEqual(families.placeholder(inside, 200064), ("vision_config.image_token_id", 200010))

    def test_a_config_without_one_is_refused(self):
        with self.assertRaises(RecorderError):
            families.placeholder({"model_type": "idefics3"}, 49280)


class Measured(unittest.TestCase):
    """Committed rows say what real inputs were."""

    def test_tokens_and_bytes_of_committed_rows(self):
        checked = 0
        for path in glob.glob(os.path.join(ROOT, "tests", "validation", "rows", "*.json")):
            with open(path, encoding="utf-8") as f:
                rows = json.load(f).get("rows", [])  # others hold single operations
            for row in rows:
                if "image" in row:  # laid out as a processor does that is set otherwise
                    continue
                if document(row["model"])["model_type"] in OF_OWN_CODE:
                    continue
                train = "training" in os.path.basename(path) or row.get("mode") == "train"
                i = images(row["model"], *row["hw"], batch=row["batch"], count=row["images"])
                s = arrange(row["text"], row["images"], i.tokens)
                self.assertEqual((s.length, s.image_tokens), (row["seq"], row["image_tokens"]), row)
                self.assertEqual(input_bytes(i, s, row, train), row["input_bytes"], row["model"])
                checked += 1
        self.assertGreater(checked, 70)


def input_bytes(i, s, row: dict, train: bool) -> int:
    """Ids and masks, what a family adds to them, labels, and the images' tensors."""
    positions = row["batch"] * s.length
    sizes = {"pixels": 4 if row["dtype"] == "float32" else 2, "int32": 4, "float32": 4, "bool": 1}
    total = positions * 8 * (3 if train else 2)
    total += positions * (0 if not i.token_types else 4 if i.axes else 8)
    total += positions * (8 if i.expert_types else 0)
    if i.cross_tiles:
        total += positions * row["images"] * i.cross_tiles[1] * 8
    if i.decoder and not train:
        total += row["batch"] * 8  # the decoder's first token
    for t in i.tensors.values():
        elements = 1
        for n in t.shape:
            elements *= n
        total += elements * sizes.get(t.dtype, 8)
    return total


class Table(unittest.TestCase):
    def test_an_unknown_type_names_the_known_ones(self):
        with self.assertRaises(RecorderError) as caught:
            families.family({"model_type": "lava"})
        self.assertIn("did you mean llava? known: idefics3, smolvlm, aya_vision", caught.exception.hint)

    def test_a_missing_key_is_named(self):
        with self.assertRaises(RecorderError) as caught:
            families.lay_out(Request({"model_type": "llava", "vision_config": {"patch_size": 14}}, 1, 1, 336, 336))
        self.assertIn("vision_config.image_size", str(caught.exception))

    def test_text_must_separate_the_images(self):
        self.assertEqual(arrange(2, 2, 10).starts, (1, 12))
        self.assertEqual(arrange(2, 2, 10).length, 22)
        with self.assertRaises(RecorderError):
            arrange(1, 2, 10)

    @unittest.skipUnless(PROGRAM, "the program vlmest is not built")
    def test_every_shipped_config_has_as_many_tokens_as_vlmest_says(self):
        sizes = [None, (336, 336), (480, 640), (1080, 1920), (300, 1200), (64, 90), (37, 2000)]
        for path in sorted(glob.glob(os.path.join(CONFIGS, "*-[0-9]*b*.json"))):
            document = load(path).document
            if "vision_config" not in document or document["model_type"] not in families.FAMILIES:
                continue  # models of sound are not recorded
            count = 1 if document["model_type"] == "instructblip" else 2  # which takes no more
            for size in sizes:
                height, width = size or families.native_size(document)
                found = families.lay_out(Request(document, 1, count, height, width)).tokens
                command = [PROGRAM, "--config", path, "--images", str(count), "--phase", "inference"]
                command += ["--json", "--top", "0"] + (["--image-size", f"{height}x{width}"] if size else [])
                said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["inputs"]
                self.assertEqual((count * found, [height, width]), (said["image_tokens"], said["image_size"]), path)


if __name__ == "__main__":
    unittest.main()
