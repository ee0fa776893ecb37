/* ---------------------------------------------
   Job: late-night orders; owner: data team
   --------------------------------------------- */
-- source; the generator
Create Table If Not Exists `Orders` (
  `id`     Bigint,            -- the id
  `amount` Double,            /* in euro; may be null */
  `ts`     Timestamp(3),
  Watermark For `ts` As `ts` - Interval '5' Second
) With (
  'connector' = 'datagen'     -- ; not the end
);
Create Table `LateNight` (`id` Bigint, `amount` Double, `hint` String) With ('connector' = 'print');

Insert Into `LateNight`
Select `id`, `amount`, 'a;b -- c' From `Orders` Where Hour(`ts`) >= 8 Or Hour(`ts`) < 6
;
;
